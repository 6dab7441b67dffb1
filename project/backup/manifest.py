"""What a backup holds, written down last: a folder without it is not a backup."""

import json
import os
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from project.backup.errors import BackupError

MANIFEST_NAME = "manifest.json"
MANIFEST_FORMAT = 1
BLOCK_SIZE = 1024 * 1024


@dataclass
class Manifest:
    """Everything a restore is held against."""

    made_at: str
    # Vendor, version of the server, and the form of the dump.
    database: dict[str, str]
    # Of our own code and what it runs on.
    versions: dict[str, str]
    migrations: list[list[str]]
    # By table: rows and digest.
    tables: dict[str, list[Any]] = field(default_factory=dict)
    chain: list[dict[str, Any]] = field(default_factory=list)
    # By id of the version: the digest of its text.
    prompts: dict[str, str] = field(default_factory=dict)
    # What the form of the dump needs to be put back.
    details: dict[str, Any] = field(default_factory=dict)
    # By path in the folder: size and SHA-256.
    files: dict[str, list[Any]] = field(default_factory=dict)
    format: int = MANIFEST_FORMAT

    @property
    def rows(self) -> int:
        return sum(count for count, _ in self.tables.values())

    @property
    def size(self) -> int:
        return sum(size for size, _ in self.files.values())


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """List the files that are there, and put everything on the disk for good."""
    manifest.files = {name: checksum_file(folder / name) for name in list_file_names(folder)}
    body = asdict(manifest)
    text = json.dumps(body | {"digest": compute_manifest_digest(body)}, indent=1, sort_keys=True)
    (folder / MANIFEST_NAME).write_text(text, encoding="utf-8")
    for path in [folder / name for name in (*manifest.files, MANIFEST_NAME)]:
        sync_to_disk(path)
    for path in [*(path for path in folder.rglob("*") if path.is_dir()), folder]:
        sync_to_disk(path)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a backup whose every file is what was written."""
    manifest = parse_manifest(folder)
    for name, expected in manifest.files.items():
        if not (folder / name).is_file():
            raise BackupError(f"This backup is not whole: {name} is missing. Take another one.")
        if checksum_file(folder / name) != expected:
            raise BackupError(f"This backup was changed: {name} is not what was written. Take another one.")
    return manifest


def parse_manifest(folder: Path) -> Manifest:
    try:
        body: dict[str, Any] = json.loads((folder / MANIFEST_NAME).read_text(encoding="utf-8"))
        if body.get("format") != MANIFEST_FORMAT:
            raise BackupError(
                f"This backup has the form {body.get('format')}; this release reads {MANIFEST_FORMAT}."
            )
        said = body.pop("digest", "")
        if said != compute_manifest_digest(body):
            raise BackupError("This backup was changed: its manifest is not what was written.")
        return Manifest(**body)
    except FileNotFoundError:
        raise BackupError(f"There is no backup in {folder}: it has no {MANIFEST_NAME}.") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise BackupError(f"The manifest of this backup cannot be read: {error}.") from error


def compute_manifest_digest(body: dict[str, Any]) -> str:
    return sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def list_file_names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def checksum_file(path: Path) -> list[Any]:
    whole = sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK_SIZE):
            whole.update(block)
        return [file.tell(), whole.hexdigest()]


def sync_to_disk(path: Path) -> None:
    """On the disk, not only on its way there."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

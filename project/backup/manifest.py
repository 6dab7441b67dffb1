"""The manifest of a backup. It is written last: a folder without a manifest is not a backup."""

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
    """Description of a backup, against which a restore is verified. Field names are keys of the JSON file."""

    made_at: str
    # Vendor, server version and format of the dump.
    database: dict[str, str]
    # Versions of Django, Python and the prompt compiler.
    versions: dict[str, str]
    migrations: list[list[str]]
    # Row count and checksum by table.
    tables: dict[str, list[Any]] = field(default_factory=dict)
    # Heads of the hash chains of each workspace.
    chain: list[dict[str, Any]] = field(default_factory=list)
    # SHA-256 of the prompt text by version id, for a random sample of versions.
    prompts: dict[str, str] = field(default_factory=dict)
    # Further data for the restore, which depends on the format of the dump.
    details: dict[str, Any] = field(default_factory=dict)
    # Size in bytes and SHA-256 of each file, by its path in the folder.
    files: dict[str, list[Any]] = field(default_factory=dict)
    format: int = MANIFEST_FORMAT

    @property
    def rows(self) -> int:
        return sum(count for count, _ in self.tables.values())

    @property
    def size(self) -> int:
        return sum(size for size, _ in self.files.values())


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest with the checksums of all files, and sync everything to disk."""
    manifest.files = {name: checksum_file(folder / name) for name in list_file_names(folder)}
    body = asdict(manifest)
    text = json.dumps(body | {"digest": compute_manifest_digest(body)}, indent=1, sort_keys=True)
    (folder / MANIFEST_NAME).write_text(text, encoding="utf-8")
    for path in [folder / name for name in (*manifest.files, MANIFEST_NAME)]:
        sync_to_disk(path)
    for path in [*(path for path in folder.rglob("*") if path.is_dir()), folder]:
        sync_to_disk(path)


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest after checking every file against it."""
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
        digest = body.pop("digest", "")
        if digest != compute_manifest_digest(body):
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
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK_SIZE):
            digest.update(block)
        return [file.tell(), digest.hexdigest()]


def sync_to_disk(path: Path) -> None:
    """Flush a file or folder to disk with fsync."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

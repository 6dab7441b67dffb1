"""The manifest of a backup. It is written last: a folder without a manifest is not a backup.

It is signed if the process has the signing key. Otherwise anyone who can change the files could write a new
manifest with the right checksums.
"""

import json
import os
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from project.backup.errors import BackupError
from prompts.evidence.integrity.checkpoint_signer import NoSigningKey, load_signing_key
from prompts.evidence.integrity.trusted_keys import find_trust_fault, get_trusted_keys
from prompts.proof.json_reader import read_record
from prompts.proof.signatures import StatementSignature, is_signature_valid, sign_body

MANIFEST_NAME = "manifest.json"
MANIFEST_FORMAT = 1
SIGNATURE_DOMAIN = "backup-manifest"
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
    # Further data for the restore; it depends on the format of the dump.
    details: dict[str, Any] = field(default_factory=dict)
    # Size in bytes and SHA-256 of each file, by its path in the folder.
    files: dict[str, list[Any]] = field(default_factory=dict)
    # Number and hash of the last line of the journal of endings. A restore applies the lines after it.
    journal: list[Any] = field(default_factory=lambda: [0, ""])
    format: int = MANIFEST_FORMAT
    # Signature of the digest of all other fields; None if the process had no signing key.
    signature: StatementSignature | None = None

    @property
    def rows(self) -> int:
        return sum(count for count, _ in self.tables.values())

    @property
    def size(self) -> int:
        return sum(size for size, _ in self.files.values())


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest with the checksums of all files, sign it, and sync everything to disk."""
    manifest.files = {name: checksum_file(folder / name) for name in list_file_names(folder)}
    body = {name: value for name, value in asdict(manifest).items() if name != "signature"}
    body["digest"] = compute_manifest_digest(body)
    manifest.signature = sign_manifest(body["digest"])
    if manifest.signature:
        body["signature"] = vars(manifest.signature)
    text = json.dumps(body, indent=1, sort_keys=True)
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
            raise BackupError(f"This backup is incomplete: {name} is missing. Use another backup.")
        if checksum_file(folder / name) != expected:
            raise BackupError(
                f"This backup was changed: {name} does not match the manifest. Use another backup."
            )
    return manifest


def parse_manifest(folder: Path) -> Manifest:
    try:
        body: dict[str, Any] = json.loads((folder / MANIFEST_NAME).read_text(encoding="utf-8"))
        if body.get("format") != MANIFEST_FORMAT:
            raise BackupError(
                f"This backup has the format {body.get('format')}, but this release reads {MANIFEST_FORMAT}."
            )
        digest, signature = body.pop("digest", ""), body.pop("signature", None)
        if digest != compute_manifest_digest(body):
            raise BackupError("This backup was changed: its manifest does not match its digest.")
        manifest = Manifest(**body)
        if signature is not None:
            manifest.signature = read_record(StatementSignature, signature, "the signature")
            check_signature(digest, manifest.signature)
    except FileNotFoundError:
        raise BackupError(f"No backup in {folder}: {MANIFEST_NAME} is missing.") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise BackupError(f"The manifest of this backup cannot be read: {error}.") from error
    return manifest


# --- signature -----------------------------------------------------------------------------------------


def sign_manifest(digest: str) -> StatementSignature | None:
    """Sign the digest of a manifest; None if this process has no signing key."""
    try:
        key = load_signing_key()
    except NoSigningKey:
        return None
    return sign_body(SIGNATURE_DOMAIN, {"digest": digest}, key)


def check_signature(digest: str, signature: StatementSignature) -> None:
    """Raise BackupError unless a trusted key signed the digest."""
    if not is_signature_valid(SIGNATURE_DOMAIN, {"digest": digest}, signature):
        raise BackupError("This backup was changed: the signature of its manifest is not valid.")
    try:
        reason = find_trust_fault(get_trusted_keys(), signature.key, signature.load_key())
    except NoSigningKey as error:
        raise BackupError(f"The signature of this backup cannot be checked. {error.message}") from error
    if reason:
        raise BackupError(
            f"This backup is signed with {signature.key}: {reason}. If the key is yours, add its ID "
            "to DRAMATIS_TRUSTED_KEYS."
        )


def require_signature(manifest: Manifest, *, allow_unsigned: bool) -> str:
    """Return a sentence about the signature. Raise BackupError if there is none and there should be one."""
    if manifest.signature is not None:
        return f"The manifest is signed with {manifest.signature.key}, which is a trusted key."
    try:
        get_trusted_keys()
    except NoSigningKey:
        return (
            "The manifest is not signed, and no trusted key is configured. The origin of this "
            "backup cannot be verified."
        )
    if allow_unsigned:
        return "The manifest is not signed. The origin of this backup cannot be verified."
    raise BackupError(
        "The manifest of this backup is not signed, so it may have been changed. If you trust its "
        "origin, pass --allow-unsigned."
    )


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

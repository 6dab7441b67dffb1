"""The manifest of a backup is signed: a changed or foreign one is refused, an unsigned one too by default."""

import json
from pathlib import Path

import pytest

from project.backup.errors import BackupError
from project.backup.manifest import (
    MANIFEST_NAME,
    compute_manifest_digest,
    read_manifest,
    require_signature,
)
from prompts.proof.signatures import sign_body
from prompts.proof.signing_keys import generate_signing_key
from tests.project.backup.small_backup import write_small_backup


@pytest.fixture
def backup(tmp_path) -> Path:
    return write_small_backup(tmp_path / "backup")


def rewrite_manifest(backup: Path, **changes: object) -> None:
    """Change fields and write the right digest, as an attacker without the signing key can."""
    body = json.loads((backup / MANIFEST_NAME).read_text())
    signature = changes.pop("signature", body["signature"])
    body = {name: value for name, value in body.items() if name not in {"digest", "signature"}} | changes
    body["digest"] = compute_manifest_digest(body)
    body["signature"] = signature(body["digest"]) if callable(signature) else signature
    (backup / MANIFEST_NAME).write_text(json.dumps(body))


def test_a_signed_manifest_is_accepted(backup):
    assert "which is a trusted key" in require_signature(read_manifest(backup), allow_unsigned=False)


@pytest.mark.planted
def test_a_changed_manifest_with_the_right_digest_is_refused(backup):
    rewrite_manifest(backup, made_at="2026-01-01T00:00:00+00:00")
    with pytest.raises(BackupError, match="signature of its manifest is not valid"):
        read_manifest(backup)


@pytest.mark.planted
def test_a_manifest_signed_with_an_unknown_key_is_refused(backup):
    key = generate_signing_key()
    rewrite_manifest(
        backup, signature=lambda digest: vars(sign_body("backup-manifest", {"digest": digest}, key))
    )
    with pytest.raises(BackupError, match="not one of the trusted keys"):
        read_manifest(backup)


@pytest.mark.planted
def test_a_foreign_key_with_the_id_of_a_trusted_one_is_refused(backup):
    key = generate_signing_key()
    trusted = read_manifest(backup).signature
    assert trusted is not None
    rewrite_manifest(
        backup,
        signature=lambda digest: {
            **vars(sign_body("backup-manifest", {"digest": digest}, key)),
            "key": trusted.key,
        },
    )
    with pytest.raises(BackupError, match="not valid"):
        read_manifest(backup)


def test_a_key_that_is_trusted_by_its_id_is_enough(backup, settings):
    manifest = read_manifest(backup)
    assert manifest.signature is not None
    settings.DRAMATIS_TRUSTED_KEYS = manifest.signature.key
    assert "trusted key" in require_signature(read_manifest(backup), allow_unsigned=False)


def test_an_unsigned_manifest_needs_an_option(tmp_path, settings):
    settings.PRODUCTION, settings.DRAMATIS_SIGNING_KEY = True, ""
    manifest = read_manifest(write_small_backup(tmp_path / "backup"))
    assert manifest.signature is None
    assert "no trusted key is configured" in require_signature(manifest, allow_unsigned=False)
    settings.DRAMATIS_TRUSTED_KEYS = "0123456789abcdef"
    with pytest.raises(BackupError, match="--allow-unsigned"):
        require_signature(manifest, allow_unsigned=False)
    assert "not signed" in require_signature(manifest, allow_unsigned=True)


def test_a_signature_cannot_be_checked_without_trusted_keys(backup, settings):
    settings.PRODUCTION, settings.DRAMATIS_SIGNING_KEY = True, ""
    with pytest.raises(BackupError, match="cannot be checked"):
        read_manifest(backup)


def test_a_manifest_whose_signature_was_removed_is_unsigned(backup):
    body = json.loads((backup / MANIFEST_NAME).read_text())
    del body["signature"]
    (backup / MANIFEST_NAME).write_text(json.dumps(body))
    with pytest.raises(BackupError, match="not signed"):
        require_signature(read_manifest(backup), allow_unsigned=False)


def test_a_manifest_of_another_format_is_rejected(backup):
    body = json.loads((backup / MANIFEST_NAME).read_text()) | {"format": 2}
    (backup / MANIFEST_NAME).write_text(json.dumps(body))
    with pytest.raises(BackupError, match="has the format 2"):
        read_manifest(backup)

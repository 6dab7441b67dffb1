"""A backup without a database, for tests of the manifest and the journal."""

from datetime import datetime
from pathlib import Path

from django.utils import timezone

from project.backup.checkpoint_backup import CHECKPOINTS_FOLDER
from project.backup.endings import copy_journal
from project.backup.manifest import Manifest, write_manifest


def write_small_backup(folder: Path, made_at: datetime | None = None) -> Path:
    """Write a backup with a manifest and the journal, and without a database."""
    (folder / CHECKPOINTS_FOLDER).mkdir(parents=True)
    (folder / "database.dump").write_bytes(b"rows")
    manifest = Manifest((made_at or timezone.now()).isoformat(), {"vendor": "none"}, {}, [])
    manifest.journal = list(copy_journal(folder))
    write_manifest(folder, manifest)
    return folder

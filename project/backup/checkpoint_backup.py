"""Copy checkpoint files into a backup and restore them.

A checkpoint is a signed statement of the heads of the hash chains. The files hold a second copy of each one.
"""

import fcntl
import os
import shutil
from pathlib import Path

from django.conf import settings
from django.utils import timezone

CHECKPOINTS_FOLDER = "checkpoints"
FILE_PATTERNS = ("*.jsonl", "*.pem")


def list_checkpoint_files(folder: Path) -> list[Path]:
    return sorted(path for kind in FILE_PATTERNS for path in folder.glob(kind))


def copy_checkpoint_files(folder: Path) -> int:
    """Copy the checkpoint files into a backup and return their number.

    Call this before the database snapshot is opened. Each checkpoint is written to the database first and to
    its file afterwards, so the snapshot then contains every checkpoint that is in the copied files.
    """
    (folder / CHECKPOINTS_FOLDER).mkdir()
    paths = list_checkpoint_files(Path(settings.DRAMATIS_CHECKPOINT_DIR))
    for path in paths:
        with path.open("rb") as file, (folder / CHECKPOINTS_FOLDER / path.name).open("wb") as copy:
            # Wait for writers, which hold an exclusive lock until their line is complete.
            fcntl.flock(file, fcntl.LOCK_SH)
            shutil.copyfileobj(file, copy)
    return len(paths)


def restore_checkpoint_files(folder: Path) -> Path | None:
    """Restore the checkpoint files from a backup.

    Existing files are moved to another folder and not deleted, because they may contain later checkpoints.
    Return that folder, or None if there were no files.
    """
    target = Path(settings.DRAMATIS_CHECKPOINT_DIR)
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    moved_to = move_existing_files(target)
    for path in list_checkpoint_files(folder / CHECKPOINTS_FOLDER):
        handle = os.open(target / path.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with path.open("rb") as file, os.fdopen(handle, "wb") as copy:
            shutil.copyfileobj(file, copy)
    return moved_to


def move_existing_files(target: Path) -> Path | None:
    existing = list_checkpoint_files(target)
    if not existing:
        return None
    folder = target / f"before-restore-{timezone.now():%Y%m%dT%H%M%S%f}"
    folder.mkdir(mode=0o700)
    for path in existing:
        path.rename(folder / path.name)
    return folder

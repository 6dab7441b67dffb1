"""Copy checkpoint files into a backup and restore them."""

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

    Called before the snapshot: a line is written after its database row, so the snapshot has the row of each
    line.
    """
    (folder / CHECKPOINTS_FOLDER).mkdir()
    paths = list_checkpoint_files(Path(settings.DRAMATIS_CHECKPOINT_DIR))
    for path in paths:
        with path.open("rb") as file, (folder / CHECKPOINTS_FOLDER / path.name).open("wb") as copy:
            # Writers hold an exclusive lock until their line is complete.
            fcntl.flock(file, fcntl.LOCK_SH)
            shutil.copyfileobj(file, copy)
    return len(paths)


def restore_checkpoint_files(folder: Path) -> Path | None:
    """Restore the checkpoint files and return the folder that the existing ones were moved to, if any.

    The existing files may contain later checkpoints, so they are kept.
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

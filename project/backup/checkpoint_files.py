"""The second copy of the checkpoints, in and out of a backup."""

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
    """Before the moment is taken: every line is written after its row, so each will find one."""
    (folder / CHECKPOINTS_FOLDER).mkdir()
    found = list_checkpoint_files(Path(settings.DRAMATIS_CHECKPOINT_DIR))
    for path in found:
        with path.open("rb") as file, (folder / CHECKPOINTS_FOLDER / path.name).open("wb") as copy:
            # Whoever writes a line holds the file until it is whole.
            fcntl.flock(file, fcntl.LOCK_SH)
            shutil.copyfileobj(file, copy)
    return len(found)


def restore_checkpoint_files(folder: Path) -> Path | None:
    """Where they are looked for; what lies there already may know a later past, and is moved aside."""
    target = Path(settings.DRAMATIS_CHECKPOINT_DIR)
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = move_existing_files(target)
    for path in list_checkpoint_files(folder / CHECKPOINTS_FOLDER):
        handle = os.open(target / path.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with path.open("rb") as file, os.fdopen(handle, "wb") as copy:
            shutil.copyfileobj(file, copy)
    return aside


def move_existing_files(target: Path) -> Path | None:
    present = list_checkpoint_files(target)
    if not present:
        return None
    aside = target / f"before-restore-{timezone.now():%Y%m%dT%H%M%S%f}"
    aside.mkdir(mode=0o700)
    for path in present:
        path.rename(aside / path.name)
    return aside

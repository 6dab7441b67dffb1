"""Checkpoint copies on disk: one JSON Lines file per workspace, with the public keys in the same folder."""

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

from prompts.proof.checkpoints import SignedCheckpoint, format_checkpoint_line, read_checkpoint_lines
from prompts.proof.faults import Fault

# How much of the end of the file is read to find the last line: enough even if it lists all chain heads.
MAX_TAIL_BYTES = 4 * 1024 * 1024
# Tolerance for file times, which are those of the last system tick: they may be before the checkpoint's time.
TICK_SECONDS = 0.02
# Receives the last checkpoint of the file and returns the checkpoints to append after it.
ListFollowing = Callable[[SignedCheckpoint | None], Sequence[SignedCheckpoint]]


def get_checkpoint_path(workspace_id: int) -> Path:
    return Path(settings.DRAMATIS_CHECKPOINT_DIR) / f"{workspace_id}.jsonl"


def append_checkpoints(workspace_id: int, list_following: ListFollowing) -> int:
    """Append the checkpoints that the file lacks, durably (fsync), and return their number.

    Raise OSError if the file cannot be written.
    """
    path = get_checkpoint_path(workspace_id)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
        # File lock: two processes that sign at the same time must not interleave their lines.
        fcntl.flock(file, fcntl.LOCK_EX)
        checkpoints = list_following(read_last_checkpoint(file))
        file.write("".join(format_checkpoint_line(checkpoint) for checkpoint in checkpoints).encode())
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)
    return len(checkpoints)


def read_last_checkpoint(file: BinaryIO) -> SignedCheckpoint | None:
    """Return the last readable checkpoint, and leave the file position after the last complete line.

    An incomplete line, left by a crash, is overwritten: the database has the complete checkpoint.
    """
    size = file.seek(0, os.SEEK_END)
    start = file.seek(max(0, size - MAX_TAIL_BYTES))
    tail = file.read()
    complete_length = tail.rfind(b"\n") + 1
    file.seek(start + complete_length)
    lines = tail[:complete_length].decode(errors="replace").split("\n")
    checkpoints = [each for each in read_checkpoint_lines(lines) if isinstance(each, SignedCheckpoint)]
    return checkpoints[-1] if checkpoints else None


def write_public_key(key: str, pem: str) -> None:
    """Save a public key next to the checkpoint files, so a copy of the folder can be verified on its own."""
    path = Path(settings.DRAMATIS_CHECKPOINT_DIR) / f"{key}.pem"
    if not path.exists():
        path.write_text(pem, encoding="ascii")


def sync_folder(folder: Path) -> None:
    """Fsync the folder; otherwise a newly created file in it may be missing after a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def get_checkpoint_file_size(workspace_id: int) -> int:
    """Return the size of the checkpoint file in bytes; 0 if it does not exist."""
    path = get_checkpoint_path(workspace_id)
    return path.stat().st_size if path.exists() else 0


def is_copied_since(workspace_id: int, signed_at: datetime) -> bool:
    """Whether the file was written after a checkpoint was signed, and ends with a complete line.

    A worker that was killed while it copied leaves an empty file or an incomplete line.
    """
    path = get_checkpoint_path(workspace_id)
    if not path.exists() or path.stat().st_mtime + TICK_SECONDS < signed_at.timestamp():
        return False
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 1))
        return file.read() == b"\n"


def read_checkpoint_copies(workspace_id: int, size: int | None = None) -> Iterator[SignedCheckpoint | Fault]:
    """Stream the checkpoints of the file, oldest first, up to `size` bytes (default: all)."""
    path = get_checkpoint_path(workspace_id)
    if path.exists():
        with path.open("rb") as file:
            yield from read_checkpoint_lines(
                read_lines_until(file, get_checkpoint_file_size(workspace_id) if size is None else size)
            )


def read_lines_until(file: BinaryIO, size: int) -> Iterator[str]:
    while file.tell() < size:
        yield file.readline().decode(errors="replace")


# --- copies from elsewhere -----------------------------------------------------------------------------


def list_copy_files(path: Path) -> list[Path]:
    """List the checkpoint files of a copy: the file itself, or those of the folder."""
    return sorted(path.glob("*.jsonl")) if path.is_dir() else [path]


def read_outside_copy(path: Path, workspace_id: int) -> Iterator[SignedCheckpoint | Fault]:
    """Stream the checkpoints of a workspace, and unreadable lines, from a file or folder kept elsewhere."""
    own = path / f"{workspace_id}.jsonl"
    # A folder of checkpoint files has one for each workspace. Files with other names are searched too.
    files = [file for file in list_copy_files(path) if file == own or not file.stem.isdigit()]
    for file in files if path.is_dir() else [path]:
        with file.open("rb") as lines:
            for copy in read_checkpoint_lines(line.decode(errors="replace") for line in lines):
                if isinstance(copy, Fault) or copy.body["workspace"] == workspace_id:
                    yield copy


def list_copied_workspaces(path: Path) -> set[int]:
    """List the ids of the workspaces that have checkpoints in a copy."""
    ids = set()
    for file in list_copy_files(path):
        with file.open("rb") as lines:
            for copy in read_checkpoint_lines(line.decode(errors="replace") for line in lines):
                if isinstance(copy, SignedCheckpoint):
                    ids.add(int(copy.body["workspace"]))
                    if file.stem.isdigit():
                        break
    return ids

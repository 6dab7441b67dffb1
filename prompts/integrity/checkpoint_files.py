"""The second copy of checkpoints: one file of JSON lines per workspace, and the public keys beside it."""

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

from prompts.proof.checkpoints import SignedCheckpoint, format_checkpoint_line, read_checkpoint_lines
from prompts.proof.faults import Fault

# Enough for the last line, whatever heads it brings, without reading years of others.
MAX_TAIL_BYTES = 4 * 1024 * 1024
# Of the last line that is there, those that must follow it.
ListFollowing = Callable[[SignedCheckpoint | None], Sequence[SignedCheckpoint]]


def get_checkpoint_path(workspace_id: int) -> Path:
    return Path(settings.DRAMATIS_CHECKPOINT_DIR) / f"{workspace_id}.jsonl"


def append_checkpoints(workspace_id: int, following: ListFollowing) -> int:
    """Write what is missing for good: it is on the disk when this returns, or it raises OSError."""
    path = get_checkpoint_path(workspace_id)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
        # Two that sign at once must not write into each other's line.
        fcntl.flock(file, fcntl.LOCK_EX)
        signed = following(read_last_checkpoint(file))
        file.write("".join(format_checkpoint_line(each) for each in signed).encode())
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)
    return len(signed)


def read_last_checkpoint(file: BinaryIO) -> SignedCheckpoint | None:
    """The last line that can be read; what a crash cut off is dropped, for the database has it whole."""
    size = file.seek(0, os.SEEK_END)
    start = file.seek(max(0, size - MAX_TAIL_BYTES))
    tail = file.read()
    whole = tail.rfind(b"\n") + 1
    if whole < len(tail):
        file.truncate(start + whole)
    file.seek(start + whole)
    lines = tail[:whole].decode(errors="replace").split("\n")
    found = [each for each in read_checkpoint_lines(lines) if isinstance(each, SignedCheckpoint)]
    return found[-1] if found else None


def write_public_key(key: str, pem: str) -> None:
    """Whoever carries the folder away has what the signatures are checked with."""
    path = Path(settings.DRAMATIS_CHECKPOINT_DIR) / f"{key}.pem"
    if not path.exists():
        path.write_text(pem, encoding="ascii")


def sync_folder(folder: Path) -> None:
    """A new file is there after a power cut only once its folder is."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def get_checkpoint_file_size(workspace_id: int) -> int:
    """How long the file is now; nothing when there is none."""
    path = get_checkpoint_path(workspace_id)
    return path.stat().st_size if path.exists() else 0


def read_checkpoint_copies(workspace_id: int, size: int | None = None) -> Iterator[SignedCheckpoint | Fault]:
    """What the file holds, or held when it was so long, oldest first; a line at a time."""
    path = get_checkpoint_path(workspace_id)
    if path.exists():
        with path.open("rb") as file:
            yield from read_checkpoint_lines(
                read_lines_until(file, get_checkpoint_file_size(workspace_id) if size is None else size)
            )


def read_lines_until(file: BinaryIO, size: int) -> Iterator[str]:
    while file.tell() < size:
        yield file.readline().decode(errors="replace")

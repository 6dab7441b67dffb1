"""A small disk: a tmpfs in a mount namespace of its own, which ends with the process that holds it."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from project.supervisor.supervisor import set_parent_death_signal

# The holder waits for the end of its input.
HOLD = 'mount -t tmpfs -o "size=$1,mode=0777" tmpfs "$2" && echo mounted && read -r _'
FILLER = "filler"
BLOCK_BYTES = 4_096


@dataclass
class SmallDisk:
    """The mounted folder and the process that holds its namespace."""

    folder: Path
    pid: int

    @property
    def prefix(self) -> tuple[str, ...]:
        """The words that run a command where this disk is mounted."""
        own_user = () if os.getuid() == 0 else ("--user", "--preserve-credentials")
        return ("nsenter", "--target", str(self.pid), "--mount", *own_user, f"--wd={Path.cwd()}", "--")

    @property
    def outside(self) -> Path:
        """The folder as processes of other namespaces reach it."""
        return Path(f"/proc/{self.pid}/root{self.folder}")

    def fill(self) -> None:
        """Write a file until the disk has no room."""
        with (self.outside / FILLER).open("ab", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * BLOCK_BYTES)
            except OSError:
                return

    def free(self) -> None:
        (self.outside / FILLER).unlink(missing_ok=True)


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[SmallDisk]:
    """Mount a small disk; skip the test where the system does not allow it."""
    own_user = () if os.getuid() == 0 else ("--user", "--map-current-user", "--keep-caps")
    if not shutil.which("unshare"):
        pytest.skip("unshare is missing")
    holder = subprocess.Popen(
        ["unshare", "--mount", *own_user, "sh", "-c", HOLD, "sh", str(size), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=set_parent_death_signal,
    )
    assert holder.stdout is not None
    try:
        if holder.stdout.readline() != b"mounted\n":
            pytest.skip("no file system can be mounted here")
        yield SmallDisk(folder, holder.pid)
    finally:
        holder.communicate()

"""Start child processes that do not outlive us."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

PR_SET_PDEATHSIG = 1
# Loaded before any fork: between fork and exec only calls that take no lock are safe.
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def die_with_parent() -> None:
    """Ask Linux to end this process when its parent ends; elsewhere the guard does it."""
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    output: IO[Any] | int | None = None,
) -> "subprocess.Popen[bytes]":
    """A session of its own keeps the terminal's Ctrl-C away, and names all descendants by one group."""
    return subprocess.Popen(  # noqa: S603 - the callers build the commands, nothing comes from outside
        [str(word) for word in command],
        env=None if env is None else dict(env),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=None if output is None else subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=die_with_parent,  # noqa: PLW1509 - no thread is running yet in the callers
    )


def signal_group(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    """Reach the process and all it started, even when it is gone itself."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)

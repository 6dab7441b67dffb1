"""Keep a few child processes together: one ends, all end."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, Any

PR_SET_PDEATHSIG = 1
# Loaded before any fork: between fork and exec only calls that take no lock are safe.
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def set_parent_death_signal() -> None:
    """Ask Linux to end this process when its parent ends; elsewhere the guard does it."""
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start_process(
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
        preexec_fn=set_parent_death_signal,  # noqa: PLW1509 - no thread is running yet in the callers
    )


def signal_process_group(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    """Reach the process and all it started, even when it is gone itself."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


ORPHAN_KILLER_SCRIPT = Path(__file__).with_name("orphan_killer.py")
# Asked politely, then killed: jobs are acknowledged late, so a killed one is run again.
GRACE_SECONDS = 4.0
POLL_SECONDS = 0.1
BROKER_NAME = "broker"

ChildProcess = subprocess.Popen[bytes]


class Supervisor:
    """Stops the broker last: the others still talk to it while they end."""

    def __init__(self) -> None:
        self.children: dict[str, ChildProcess] = {}
        self.stopping = False
        self.guard = subprocess.Popen(  # noqa: S603 - our own script
            [sys.executable, "-I", "-S", str(ORPHAN_KILLER_SCRIPT)],
            stdin=subprocess.PIPE,
            # Out of our group: a signal to the whole group must not take the guard along.
            start_new_session=True,
        )
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._ask_to_stop)

    def _ask_to_stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stopping = True

    def start(self, name: str, command: Sequence[str | Path], env: Mapping[str, str]) -> None:
        self.adopt(name, start_process(command, env=env))

    def adopt(self, name: str, process: ChildProcess) -> None:
        self.children[name] = process
        self._tell_guard(str(process.pid))

    def _tell_guard(self, line: str) -> None:
        if self.guard.stdin:
            self.guard.stdin.write(f"{line}\n".encode())
            self.guard.stdin.flush()

    def ended(self) -> str | None:
        """The name of a child that is no longer there."""
        return next((name for name, child in self.children.items() if child.poll() is not None), None)

    def watch(self) -> str | None:
        """Wait for the wish to stop, or for the first child to end; name that child."""
        while not self.stopping and self.ended() is None:
            time.sleep(POLL_SECONDS)
        return None if self.stopping else self.ended()

    def stop(self) -> None:
        self.stopping = True
        stop_processes([child for name, child in self.children.items() if name != BROKER_NAME])
        stop_processes([child for name, child in self.children.items() if name == BROKER_NAME])
        self._tell_guard("done")
        if self.guard.stdin:
            self.guard.stdin.close()
        self.guard.wait()


def stop_processes(processes: Sequence[ChildProcess]) -> None:
    for process in processes:
        if process.poll() is None:
            process.terminate()
    deadline = time.monotonic() + GRACE_SECONDS
    while time.monotonic() < deadline and any(process.poll() is None for process in processes):
        time.sleep(0.02)
    for process in processes:
        # The group, because a child that ended in haste may have left its own children.
        signal_process_group(process, signal.SIGKILL)
        process.wait()

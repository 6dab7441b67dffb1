"""Process supervisor: run a few child processes, and stop all of them when one ends."""

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
# The C library is loaded before any fork: between fork and exec only calls that take no locks are safe.
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def set_parent_death_signal() -> None:
    """Make Linux kill this process when its parent ends. Elsewhere only the orphan killer does that."""
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start_process(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    output: IO[Any] | int | None = None,
) -> "subprocess.Popen[bytes]":
    """Start a process in its own session.

    Therefore Ctrl-C in the terminal does not reach it, and all its descendants are in one process group.
    """
    return subprocess.Popen(  # noqa: S603 - the callers build the commands, nothing comes from outside
        [str(argument) for argument in command],
        env=None if env is None else dict(env),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=None if output is None else subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=set_parent_death_signal,  # noqa: PLW1509 - no thread is running yet in the callers
    )


def signal_process_group(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    """Send a signal to the process and its descendants, even if the process itself has ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


ORPHAN_KILLER_SCRIPT = Path(__file__).with_name("orphan_killer.py")
# Time between SIGTERM and SIGKILL. A killed job runs again, because jobs are acknowledged at their end.
GRACE_SECONDS = 4.0
POLL_SECONDS = 0.1
BROKER_NAME = "broker"

ChildProcess = subprocess.Popen[bytes]


class Supervisor:
    """Start, watch and stop child processes.

    The broker is stopped last, because the other processes use it while they stop.
    """

    def __init__(self) -> None:
        self.children: dict[str, ChildProcess] = {}
        self.stopping = False
        self.orphan_killer = subprocess.Popen(  # noqa: S603 - our own script
            [sys.executable, "-I", "-S", str(ORPHAN_KILLER_SCRIPT)],
            stdin=subprocess.PIPE,
            # The orphan killer has its own session, so that a signal to our process group does not kill it.
            start_new_session=True,
        )
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._request_stop)

    def _request_stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stopping = True

    def start(self, name: str, command: Sequence[str | Path], env: Mapping[str, str]) -> None:
        self.add_child(name, start_process(command, env=env))

    def add_child(self, name: str, process: ChildProcess) -> None:
        self.children[name] = process
        self._notify_orphan_killer(str(process.pid))

    def _notify_orphan_killer(self, line: str) -> None:
        if self.orphan_killer.stdin:
            self.orphan_killer.stdin.write(f"{line}\n".encode())
            self.orphan_killer.stdin.flush()

    def find_ended_child(self) -> str | None:
        """Return the name of a child that has ended, or None."""
        return next((name for name, child in self.children.items() if child.poll() is not None), None)

    def watch(self) -> str | None:
        """Wait until a child ends, and return its name. Return None if a stop was requested first."""
        while not self.stopping and self.find_ended_child() is None:
            time.sleep(POLL_SECONDS)
        return None if self.stopping else self.find_ended_child()

    def stop(self) -> None:
        self.stopping = True
        stop_processes([child for name, child in self.children.items() if name != BROKER_NAME])
        stop_processes([child for name, child in self.children.items() if name == BROKER_NAME])
        self._notify_orphan_killer("done")
        if self.orphan_killer.stdin:
            self.orphan_killer.stdin.close()
        self.orphan_killer.wait()


def stop_processes(processes: Sequence[ChildProcess]) -> None:
    for process in processes:
        if process.poll() is None:
            process.terminate()
    deadline = time.monotonic() + GRACE_SECONDS
    while time.monotonic() < deadline and any(process.poll() is None for process in processes):
        time.sleep(0.02)
    for process in processes:
        # Kill the whole process group, because a child may have ended without stopping its own children.
        signal_process_group(process, signal.SIGKILL)
        process.wait()

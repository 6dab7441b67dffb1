"""Freezes processes with SIGSTOP, as on a machine that hangs: connections succeed, but get no response."""

import os
import signal
import subprocess
import time
from pathlib import Path

PROC = Path("/proc")
# States in /proc/PID/stat: stopped, traced, zombie, dead.
STILL = set("TtZXx")


def freeze(process: "subprocess.Popen[bytes]") -> None:
    """Stop a process group and wait until all of its threads are stopped.

    The signal is delivered to one thread, and the others run until it is scheduled: on a busy machine
    long enough to answer another request.
    """
    send(process, signal.SIGSTOP)
    deadline = time.monotonic() + 10
    while not stands(process) and time.monotonic() < deadline:
        time.sleep(0.002)
    assert stands(process), "It runs on."


def thaw(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        send(process, signal.SIGCONT)


def send(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    if leads(process.pid):
        os.killpg(process.pid, number)
    else:
        os.kill(process.pid, number)


def leads(pid: int) -> bool:
    return os.getpgid(pid) == pid


def stands(process: "subprocess.Popen[bytes]") -> bool:
    return all(
        said.rpartition(")")[2].split()[0] in STILL
        for pid in members(process.pid)
        for said in read(f"{pid}/task/*/stat")
    )


def members(pid: int) -> list[int]:
    """The processes of its group, if it is a group leader."""
    if not leads(pid):
        return [pid]
    told = (said.partition(" ")[0] + said.rpartition(")")[2] for said in read("[0-9]*/stat"))
    return [int(words[0]) for line in told if int((words := line.split())[3]) == pid]


def read(pattern: str) -> list[str]:
    found = []
    for path in PROC.glob(pattern):
        try:
            found.append(path.read_text())
        except OSError:  # The process has ended meanwhile.
            continue
    return found

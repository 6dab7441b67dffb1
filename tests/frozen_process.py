"""Freezes processes with SIGSTOP, as on a machine that hangs: connections succeed, but get no response."""

import os
import signal
import subprocess
import time
from pathlib import Path

PROC = Path("/proc")
# States in /proc/PID/stat: stopped, traced, zombie, dead.
STOPPED_STATES = set("TtZXx")


def freeze(process: "subprocess.Popen[bytes]") -> None:
    """Stop a process group and wait until all of its threads are stopped.

    The signal is delivered to one thread, and the others run until it is scheduled: on a busy machine
    long enough to answer another request.
    """
    send(process, signal.SIGSTOP)
    deadline = time.monotonic() + 60
    while not is_stopped(process) and time.monotonic() < deadline:
        time.sleep(0.002)
    assert is_stopped(process), "It runs on."


def thaw(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        send(process, signal.SIGCONT)


def send(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    if is_group_leader(process.pid):
        os.killpg(process.pid, number)
    else:
        os.kill(process.pid, number)


def is_group_leader(pid: int) -> bool:
    return os.getpgid(pid) == pid


def is_stopped(process: "subprocess.Popen[bytes]") -> bool:
    return all(
        stat.rpartition(")")[2].split()[0] in STOPPED_STATES
        for pid in group_members(process.pid)
        for stat in read(f"{pid}/task/*/stat")
    )


def group_members(pid: int) -> list[int]:
    """The processes of its group, if it is a group leader."""
    if not is_group_leader(pid):
        return [pid]
    stats = (stat.partition(" ")[0] + stat.rpartition(")")[2] for stat in read("[0-9]*/stat"))
    return [int(fields[0]) for line in stats if int((fields := line.split())[3]) == pid]


def read(pattern: str) -> list[str]:
    texts = []
    for path in PROC.glob(pattern):
        try:
            texts.append(path.read_text())
        except OSError:  # The process has ended meanwhile.
            continue
    return texts

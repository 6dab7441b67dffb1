"""Script that kills the child processes of a supervisor that was killed itself.

It reads process group ids from standard input, one per line, and kills these groups at the end of the input.
If it reads "done", the supervisor has stopped its children itself, and nothing is killed. Only the supervisor
holds the other end of the pipe, so the input also ends if the supervisor is killed with kill -9. The
parent-death signal of Linux is not enough, because it does not reach grandchildren.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Iterable


def read_process_groups(lines: Iterable[str]) -> list[int]:
    groups: list[int] = []
    for line in lines:
        if line.strip() == "done":
            return []
        groups.append(int(line))
    return groups


if __name__ == "__main__":
    for group in read_process_groups(sys.stdin):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)

"""A watcher that outlives a killed parent just long enough to end what it left behind.

Run as a script: it reads process groups, one number a line, and when its input ends it kills them. The word
"done" means that the parent has stopped everything itself. Only the parent holds the other end of the pipe,
so even kill -9 of the parent ends the input. The system's own parent-death signal reaches children, but not
their children.
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

"""Fork server: starts web servers from a process that has already imported the product.

Run as `python -m tests.promises.forking`: it reads commands as JSON lines and writes results, such as
process ids. A forked server runs the product's own command in its own process group. The parent has no
connections and has served no requests, so a server starts as clean as from disk.
"""

import gc
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from project.supervisor.supervisor import set_parent_death_signal

ROOT = Path(__file__).resolve().parents[2]
# The command starts with Python and `-m`; the module follows.
MODULE = 2


class ForkServer:
    """Client of the fork server."""

    def __init__(self, environment: Mapping[str, str], log: Path, prefix: Sequence[str] = ()) -> None:
        self.log, variables = log, {**os.environ, **environment}
        command = [*prefix, sys.executable, "-m", "tests.promises.forking"]
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                command,
                env=variables,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                start_new_session=True,
                preexec_fn=set_parent_death_signal,
            )

    def start(self, command: Sequence[str], more: Mapping[str, str], log: Path) -> int:
        return int(self.ask("start", [list(command), dict(more), str(log)]))

    def has_ended(self, pid: int) -> bool:
        return bool(self.ask("poll", pid))

    def wait(self, pid: int) -> None:
        self.ask("wait", pid)

    def ask(self, command: str, argument: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([command, argument]) + "\n")
        self.process.stdin.flush()
        if not (result := self.process.stdout.readline()):
            raise RuntimeError(f"No server can be started: {self.log.read_text()[-3_000:]}")
        return json.loads(result)

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


# --- the fork server ----------------------------------------------------------------------------------


def read_the_product() -> None:
    """Import everything that a server needs; uses no database and starts no thread."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    import django

    django.setup()
    import granian.cli  # noqa: F401  # read, not used
    from django.urls import reverse

    import project.fetch_fast_path  # noqa: F401  # read, not used

    reverse("account_login")
    # Exclude the imported objects from garbage collection in every server.
    gc.freeze()


def fork_process(command: list[str], more: dict[str, str], log: str) -> int:
    if pid := os.fork():
        return pid
    set_parent_death_signal()
    os.setsid()
    for place, number in ((os.devnull, 0), (log, 1), (log, 2)):
        os.dup2(os.open(place, os.O_RDWR | os.O_APPEND | os.O_CREAT), number)
    os.environ.update(more)
    sys.argv = command[MODULE:]
    try:
        runpy.run_module(command[MODULE], run_name="__main__", alter_sys=True)
    finally:
        os._exit(1)


def poll(pid: int, options: int = os.WNOHANG) -> bool:
    try:
        return os.waitpid(pid, options)[0] == pid
    except ChildProcessError:
        return True


def obey() -> None:
    for line in sys.stdin:
        command, argument = json.loads(line)
        if command == "start":
            result: int | bool = fork_process(*argument)
        else:
            result = poll(argument, os.WNOHANG if command == "poll" else 0)
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    read_the_product()
    obey()

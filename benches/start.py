"""Benchmark of the start: seconds from `dev.py run` until /healthz responds, on a database that exists."""

import http.client
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benches.fetch import free_port

ROOT = Path(__file__).resolve().parent.parent
HOST = "127.0.0.1"
SERVER_VARIABLES = ("DATABASE_URL", "REDIS_URL")
RUNS = 5
MAX_SECONDS = 5.0
# The first start creates tables and demo.
START_TIMEOUT = 180.0
# Longer than the time after which the supervisor kills its children.
STOP_TIMEOUT = 30.0
# Time for worker, beat and watcher to start, so that the next run does not compete with them.
SETTLE_SECONDS = 3.0


def main(arguments: list[str]) -> int:
    runs = int(arguments[0]) if arguments else RUNS
    if not (python := shutil.which("python3")):
        raise SystemExit("There is no python3 on the PATH.")
    with TemporaryDirectory() as var:
        first = time_start(python, var)
        print(f"first start, with tables and demo: {first:.2f} s")
        times = [time_start(python, var) for _ in range(runs)]
    print("further starts: " + ", ".join(f"{seconds:.2f}" for seconds in times) + " s")
    is_met = median(times) <= MAX_SECONDS
    print(f"median {median(times):.2f} s, at most {MAX_SECONDS:g} {'met' if is_met else 'MISSED'}")
    return 0 if is_met else 1


def time_start(python: str, var: str) -> float:
    """Start the product as a user does, return the seconds until it responds, and stop it with Ctrl-C."""
    port = free_port()
    # The embedded servers, whatever the shell says.
    environment = {name: value for name, value in os.environ.items() if name not in SERVER_VARIABLES}
    environment |= {"DRAMATIS_VAR": var, "DRAMATIS_ENV": "development", "LOG_LEVEL": "ERROR"}
    started_at = time.monotonic()
    process = subprocess.Popen(  # noqa: S603  # ours
        [python, "dev.py", "run", "--port", str(port)], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
    )
    try:
        wait_until_healthy(process, port, started_at + START_TIMEOUT)
        seconds = time.monotonic() - started_at
        time.sleep(SETTLE_SECONDS)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(STOP_TIMEOUT)
    return seconds


def wait_until_healthy(process: "subprocess.Popen[bytes]", port: int, deadline: float) -> None:
    while process.poll() is None and time.monotonic() < deadline:
        with closing(http.client.HTTPConnection(HOST, port, timeout=5)) as connection, suppress(OSError):
            connection.request("GET", "/healthz", headers={"Host": "localhost"})
            if connection.getresponse().status == 200:
                return
        time.sleep(0.02)
    raise SystemExit("The product did not start.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

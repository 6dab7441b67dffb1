"""What rows weigh on PostgreSQL, and the capacity table of docs/scaling.md that follows from it."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benches.capacity_table import Assumed, Measured, fetches_told, table, words
from tests.servers import start_postgres, start_redis

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = ROOT / "docs" / "benchmarks.md"


def main() -> int:
    began = time.monotonic()
    fetches = fetches_told(BENCHMARKS.read_text(encoding="utf-8"))
    told = weighed()
    measured = Measured(fetches=fetches, **told["bytes"])
    print(f"{told['words']}; {time.monotonic() - began:.0f} s\n")
    print(words(measured, Assumed()), end="\n\n")
    print(table(measured, Assumed()))
    return 0


def weighed() -> dict[str, dict[str, float]]:
    """Filled and weighed in a process of its own, which is told where the servers are."""
    redis, server = start_redis(), start_postgres()
    try:
        with TemporaryDirectory() as var:
            environment = {
                **os.environ,
                "DATABASE_URL": server.url,
                "REDIS_URL": redis.url,
                "DRAMATIS_VAR": var,
                "DRAMATIS_ENV": "development",
                "DATABASE_STATEMENT_MS": "0",
                # Built when this says so, and once.
                "DRAMATIS_BUILD_AT_ONCE": "0",
                "LOG_LEVEL": "ERROR",
            }
            command = [sys.executable, "-m", "benches.capacity_stage"]
            done = subprocess.run(command, env=environment, cwd=ROOT, check=True, stdout=subprocess.PIPE)  # noqa: S603  # ours
            found: dict[str, dict[str, float]] = json.loads(done.stdout)
            return found
    finally:
        server.stop()
        redis.stop()


if __name__ == "__main__":
    sys.exit(main())

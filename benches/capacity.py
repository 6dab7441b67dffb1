"""Measure row sizes on PostgreSQL and print the capacity table of docs/scaling.md."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benches.capacity_table import Assumptions, Measurements, format_basis, format_table, parse_fetch_rate
from tests.servers import start_postgres, start_redis

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = ROOT / "docs" / "benchmarks.md"


def main() -> int:
    started_at = time.monotonic()
    fetches = parse_fetch_rate(BENCHMARKS.read_text(encoding="utf-8"))
    sizes = measure_sizes()
    measured = Measurements(fetches=fetches, **sizes["bytes"])
    print(f"{sizes['summary']}; {time.monotonic() - started_at:.0f} s\n")
    print(format_basis(measured, Assumptions()), end="\n\n")
    print(format_table(measured, Assumptions()))
    return 0


def measure_sizes() -> dict[str, dict[str, float]]:
    """Fill and measure the database in a separate process, with the server addresses in its environment."""
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
                # The stage builds explicitly, once.
                "DRAMATIS_BUILD_AT_ONCE": "0",
                "LOG_LEVEL": "ERROR",
            }
            command = [sys.executable, "-m", "benches.capacity_stage"]
            process = subprocess.run(command, env=environment, cwd=ROOT, check=True, stdout=subprocess.PIPE)  # noqa: S603  # ours
            sizes: dict[str, dict[str, float]] = json.loads(process.stdout)
            return sizes
    finally:
        server.stop()
        redis.stop()


if __name__ == "__main__":
    sys.exit(main())

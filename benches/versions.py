"""Benchmark of versions: publishing, shared edit with two workers, long history, verification and storage."""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.servers import start_postgres, start_redis

ROOT = Path(__file__).resolve().parent.parent
# Ledger rows and versions of the long history; the first argument is the share to create, for a quick run.
ROWS, VERSIONS = 1_000_000, 100_000


def main(arguments: list[str]) -> int:
    share = float(arguments[0]) if arguments else 1.0
    redis = start_redis()
    try:
        exit_code = max(run_on_database(kind, redis.url, share) for kind in ("postgresql", "sqlite"))
    finally:
        redis.stop()
    return exit_code


def run_on_database(kind: str, redis_url: str, share: float) -> int:
    """Run in a separate process for each database: Django is set up once per process."""
    with TemporaryDirectory() as var:
        server = start_postgres() if kind == "postgresql" else None
        url = server.url if server else f"sqlite:///{var}/bench.sqlite3"
        environment = {
            **os.environ,
            "DATABASE_URL": url,
            "REDIS_URL": redis_url,
            "DRAMATIS_VAR": var,
            "DRAMATIS_ENV": "development",
            "DATABASE_STATEMENT_MS": "0",
            "LOG_LEVEL": "ERROR",
        }
        try:
            command = [
                sys.executable,
                "-m",
                "benches.versions_run",
                str(int(ROWS * share)),
                str(int(VERSIONS * share)),
            ]
            return subprocess.run(command, env=environment, cwd=ROOT, check=False).returncode  # noqa: S603  # ours
        finally:
            if server:
                server.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

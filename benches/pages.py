"""Benchmark of pages on a large workspace: time, queries and bytes of each, and two pages in Chromium."""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benches.fetch import run_module, run_web
from tests.servers import start_postgres, start_redis

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("postgresql", "sqlite")


def main(arguments: list[str]) -> int:
    """Run on PostgreSQL, or on the database named first; further arguments select screens by name."""
    kind, *name_filters = arguments or ["postgresql"]
    if kind not in KINDS:
        raise SystemExit(f"There is no database named {kind!r}. Known: {', '.join(KINDS)}.")
    redis = start_redis()
    try:
        return run_on_database(kind, redis.url, name_filters)
    finally:
        redis.stop()


def run_on_database(kind: str, redis_url: str, name_filters: list[str]) -> int:
    with TemporaryDirectory() as var:
        server = start_postgres() if kind == "postgresql" else None
        environment = {
            **os.environ,
            "DATABASE_URL": server.url if server else f"sqlite:///{var}/bench.sqlite3",
            "REDIS_URL": redis_url,
            "DRAMATIS_VAR": var,
            "DRAMATIS_SOURCE_ROOTS": f"{var}/sources",
            "DRAMATIS_ENV": "development",
            "DATABASE_STATEMENT_MS": "0",
            "LOG_LEVEL": "ERROR",
        }
        try:
            return run_benchmark(kind, environment, name_filters)
        finally:
            if server:
                server.stop()


def run_benchmark(kind: str, environment: dict[str, str], name_filters: list[str]) -> int:
    """Create the data, then run both measurements, which print their results themselves."""
    # The stage builds all prompts at the end instead of after each change.
    stage = json.loads(
        run_module("benches.pages_stage", environment=environment | {"DRAMATIS_BUILD_AT_ONCE": "0"})
    )
    print(f"\n{kind}: {stage['summary']}", flush=True)
    exit_code = run_child("benches.pages_run", environment, stage | {"only": name_filters})
    with run_web("project.settings", environment) as server:
        return max(exit_code, run_child("benches.pages_browser", environment, stage | {"port": server.port}))


def run_child(module: str, environment: dict[str, str], stage: dict[str, object]) -> int:
    """Run a module in a separate process: Playwright's event loop and Django's database cannot share one."""
    command = [sys.executable, "-m", module]
    process = subprocess.run(  # noqa: S603  # ours
        command, cwd=ROOT, env=environment, input=json.dumps(stage), text=True, check=False
    )
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

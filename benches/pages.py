"""How fast pages are on a large workspace: time, queries and bytes of each, and two of them in Chromium."""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benches.fetch import output, web
from tests.servers import start_postgres, start_redis

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("postgresql", "sqlite")


def main(arguments: list[str]) -> int:
    """PostgreSQL, unless the other is named; any further words pick screens by their names."""
    kind, *only = arguments or ["postgresql"]
    if kind not in KINDS:
        raise SystemExit(f"There is no database named {kind!r}. Known: {', '.join(KINDS)}.")
    redis = start_redis()
    try:
        return one_kind(kind, redis.url, only)
    finally:
        redis.stop()


def one_kind(kind: str, redis_url: str, only: list[str]) -> int:
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
            return measured(kind, environment, only)
        finally:
            if server:
                server.stop()


def measured(kind: str, environment: dict[str, str], only: list[str]) -> int:
    """What each part prints goes straight through; only the stage hands its answer over."""
    # Nothing is built while the stage is laid down; it builds all at once at the end.
    told = json.loads(
        output("benches.pages_stage", environment=environment | {"DRAMATIS_BUILD_AT_ONCE": "0"})
    )
    print(f"\n{kind}: {told['words']}", flush=True)
    worst = child("benches.pages_run", environment, told | {"only": only})
    with web("project.settings", environment) as ours:
        return max(worst, child("benches.pages_browser", environment, told | {"port": ours.port}))


def child(module: str, environment: dict[str, str], told: dict[str, object]) -> int:
    """A process of its own: a browser's event loop and Django's database do not share one."""
    command = [sys.executable, "-m", module]
    done = subprocess.run(  # noqa: S603  # ours
        command, cwd=ROOT, env=environment, input=json.dumps(told), text=True, check=False
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

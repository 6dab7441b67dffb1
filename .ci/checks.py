"""Everything a machine can say about the code without running it: python3 dev.py check."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

BIN = Path(sys.executable).parent
MANAGE = [sys.executable, "manage.py"]
CODE = [
    "core",
    "project",
    "personas",
    "skills",
    "prompts",
    "benches",
    "screens",
    "clients",
    "tests",
    "dev.py",
    "manage.py",
    ".ci",
]
COMPOSE = ["docker-compose.yml", "docker-compose.dev.yml"]
# Made up, and only for `check --deploy`: nothing is connected to.
PRODUCTION = {
    "DRAMATIS_ENV": "production",
    "SECRET_KEY": "a-made-up-key-that-is-long-enough-for-the-deployment-check-0123456789",
    "PUBLIC_URL": "https://dramatis.example",
    "ALLOWED_HOSTS": "dramatis.example",
    "DATABASE_URL": "postgresql://dramatis@db/dramatis",
    "REDIS_URL": "redis://redis/0",
    "EMAIL_HOST": "mail.example",
    "DRAMATIS_SIGNING_KEY": "/run/secrets/signing_key.pem",
    "DRAMATIS_HSTS": "true",
}


@dataclass(frozen=True)
class Step:
    name: str
    command: list[str]
    env: dict[str, str] | None = None


def tool(name: str, *words: str) -> list[str]:
    return [str(BIN / name), *words]


# The slow ones first, so that the short ones fill the other core.
STEPS = [
    Step("types", tool("mypy", *CODE[:-1])),
    Step("templates lint", tool("djlint", "templates", "--lint", "--quiet")),
    Step("deployment", [*MANAGE, "check", "--deploy", "--fail-level", "WARNING"], PRODUCTION),
    Step("migrations", [*MANAGE, "makemigrations", "--check", "--dry-run"]),
    # The contract type of our own is in .ci/import_contracts.py.
    Step("import contracts", tool("lint-imports", "--no-cache"), {"PYTHONPATH": ".ci"}),
    Step("system check", [*MANAGE, "check", "--fail-level", "WARNING"]),
    Step("format", tool("ruff", "format", "--check", *CODE)),
    Step("lint", tool("ruff", "check", *CODE)),
    Step("locks", [sys.executable, ".ci/locks.py"]),
    Step(
        "compose files",
        tool("check-jsonschema", "--builtin-schema", "vendor.compose-spec", *COMPOSE),
    ),
    Step("Dockerfile", tool("hadolint", "Dockerfile")),
]


def run(step: Step) -> bool:
    began = time.monotonic()
    environment = {**os.environ, **(step.env or {})}
    done = subprocess.run(step.command, env=environment, capture_output=True, text=True, check=False)
    good = done.returncode == 0
    line = f"{'ok  ' if good else 'FAIL'} {step.name:<18} {time.monotonic() - began:5.1f} s"
    # One write, because two steps run at a time.
    print(line if good else f"{line}\n{done.stdout}{done.stderr}".rstrip(), flush=True)
    return good


def main() -> int:
    began = time.monotonic()
    with ThreadPoolExecutor(max_workers=2) as pool:
        results = list(pool.map(run, STEPS))
    failed = [step.name for step, good in zip(STEPS, results, strict=True) if not good]
    verdict = f"failed: {', '.join(failed)}" if failed else "all good"
    print(f"{len(STEPS)} checks in {time.monotonic() - began:.0f} s, {verdict}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Static checks, run by `python3 dev.py check`: types, lint, import contracts, migrations, locks."""

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
# Example values for `check --deploy`, which connects to nothing.
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


def tool_command(name: str, *arguments: str) -> list[str]:
    return [str(BIN / name), *arguments]


# Slow checks first, so that the short ones fill the other core.
STEPS = [
    Step("types", tool_command("mypy", *CODE[:-1])),
    Step("templates lint", tool_command("djlint", "templates", "--lint", "--quiet")),
    Step("deployment", [*MANAGE, "check", "--deploy", "--fail-level", "WARNING"], PRODUCTION),
    Step("migrations", [*MANAGE, "makemigrations", "--check", "--dry-run"]),
    # Our own contract type is in .ci/import_contracts.py.
    Step("import contracts", tool_command("lint-imports", "--no-cache"), {"PYTHONPATH": ".ci"}),
    Step("system check", [*MANAGE, "check", "--fail-level", "WARNING"]),
    Step("format", tool_command("ruff", "format", "--check", *CODE)),
    Step("lint", tool_command("ruff", "check", *CODE)),
    Step("locks", [sys.executable, ".ci/locks.py"]),
    Step("secrets", [sys.executable, ".ci/secret_scan.py"]),
    Step("licences", [sys.executable, ".ci/licences.py"]),
    Step(
        "compose files",
        tool_command("check-jsonschema", "--builtin-schema", "vendor.compose-spec", *COMPOSE),
    ),
    Step("Dockerfile", tool_command("hadolint", "Dockerfile")),
]


def run_step(step: Step) -> bool:
    started_at = time.monotonic()
    environment = {**os.environ, **(step.env or {})}
    result = subprocess.run(step.command, env=environment, capture_output=True, text=True, check=False)
    passed = result.returncode == 0
    line = f"{'ok  ' if passed else 'FAIL'} {step.name:<18} {time.monotonic() - started_at:5.1f} s"
    # One write, because two steps run at a time.
    print(line if passed else f"{line}\n{result.stdout}{result.stderr}".rstrip(), flush=True)
    return passed


def main() -> int:
    started_at = time.monotonic()
    with ThreadPoolExecutor(max_workers=2) as pool:
        results = list(pool.map(run_step, STEPS))
    failed = [step.name for step, passed in zip(STEPS, results, strict=True) if not passed]
    summary = f"failed: {', '.join(failed)}" if failed else "all good"
    print(f"{len(STEPS)} checks in {time.monotonic() - started_at:.0f} s, {summary}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Checks an evidence file, without a database: each check by name, and what came of it."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from prompts.proof.canonical import read_json
from prompts.proof.evidence import Check, stands, verify_evidence
from prompts.replay.rebuild_text import fill_again

ALL_OK, FAILED, ABSENT = 0, 1, 3
SIGNS = {"ok": "ok", "failed": "FAILED", "absent": "absent"}


class Command(BaseCommand):
    help = (
        "Checks an evidence file. Ends with 0 if all is proved, 1 if a check failed, 3 if parts are absent."
    )
    # No database is needed, and none is asked.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help="the evidence, as it was downloaded")
        parser.add_argument("--key", help="the operator's key, known by another way: its id, or a PEM file")

    def handle(self, *args: Any, **options: Any) -> None:
        data, key = read_evidence(options["file"]), expected(options["key"])
        checks = verify_evidence(data, fill=fill_again, expected_key=key)
        width = max(len(check.name) for check in checks)
        for check in checks:
            self.stdout.write(f"{SIGNS[check.state]:<7} {check.name:<{width}}  {check.words}")
        sys.exit(code_of(checks))


def code_of(checks: list[Check]) -> int:
    if not stands(checks):
        return FAILED
    return ALL_OK if all(check.state == "ok" for check in checks) else ABSENT


def read_evidence(name: str) -> Any:
    try:
        return read_json(Path(name).read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from None
    except ValueError as error:
        raise CommandError(f"{name}: not JSON that means one thing only: {error}") from None


def expected(key: str | None) -> str | None:
    """An id stays as it is; a file is read."""
    if key is None or not Path(key).is_file():
        return key
    return Path(key).read_text(encoding="utf-8")

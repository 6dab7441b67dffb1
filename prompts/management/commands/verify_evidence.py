"""Verify an evidence file without a database and print the result of each check."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from prompts.evidence.replay.rebuild_text import rebuild_evidence_text
from prompts.proof.canonical import parse_canonical_json
from prompts.proof.evidence import CheckResult, is_evidence_valid, verify_evidence

EXIT_OK, EXIT_FAILED, EXIT_ABSENT = 0, 1, 3
STATE_LABELS = {"ok": "ok", "failed": "FAILED", "absent": "absent"}


class Command(BaseCommand):
    help = (
        "Verify an evidence file. Exits with 0 if everything is proved, 1 if a check failed, 3 if "
        "parts are missing."
    )
    # No system checks, because the command does not use the database.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help="the evidence file, as downloaded")
        parser.add_argument(
            "--key", help=("the operator's key, obtained through another channel: its ID, or a PEM file")
        )

    def handle(self, *args: Any, **options: Any) -> None:
        data, key = read_evidence(options["file"]), read_expected_key(options["key"])
        checks = verify_evidence(data, fill=rebuild_evidence_text, expected_key=key)
        width = max(len(check.name) for check in checks)
        for check in checks:
            self.stdout.write(f"{STATE_LABELS[check.state]:<7} {check.name:<{width}}  {check.message}")
        sys.exit(get_exit_code(checks))


def get_exit_code(checks: list[CheckResult]) -> int:
    if not is_evidence_valid(checks):
        return EXIT_FAILED
    return EXIT_OK if all(check.state == "ok" for check in checks) else EXIT_ABSENT


def read_evidence(name: str) -> Any:
    try:
        return parse_canonical_json(Path(name).read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from None
    except ValueError as error:
        raise CommandError(f"{name}: invalid or ambiguous JSON: {error}") from None


def read_expected_key(key: str | None) -> str | None:
    """Return the contents of the file that `key` names; if there is no such file, `key` is a key id."""
    if key is None or not Path(key).is_file():
        return key
    return Path(key).read_text(encoding="utf-8")

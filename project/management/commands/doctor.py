"""Looks at everything the product leans on and says what to do about it."""

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from project.doctor.results import Finding, State
from project.doctor.run import examine, is_well


class Command(BaseCommand):
    help = (
        "Looks at settings, database, Redis, workers, queues, the record and disks. Ends with 1 if one fails."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="tell it to a program")
        parser.add_argument("--whole", action="store_true", help="recompute the whole record; may take long")

    def handle(self, *args: Any, **options: Any) -> None:
        findings = examine(whole=options["whole"])
        if options["json"]:
            told = {"is_well": is_well(findings), "findings": [finding.data() for finding in findings]}
            self.stdout.write(json.dumps(told, indent=2, ensure_ascii=False))
        else:
            for finding in findings:
                self.tell(finding)
        if not is_well(findings):
            sys.exit(1)

    def tell(self, finding: Finding) -> None:
        styles = {State.OK: self.style.SUCCESS, State.WARN: self.style.WARNING, State.FAIL: self.style.ERROR}
        mark = styles[finding.state](f"{finding.state:<4}")
        self.stdout.write(f"{mark}  {finding.name}: {finding.words} {finding.advice}".rstrip())

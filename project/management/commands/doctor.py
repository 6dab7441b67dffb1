"""Check settings, database, Redis, workers, chains and disks, and print advice for each problem."""

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from project.doctor.results import DoctorFinding, FindingState
from project.doctor.run import has_passed, run_checks


class Command(BaseCommand):
    help = (
        "Check settings, database, Redis, workers, queues, hash chains and disks. Exits with 1 if a "
        "check fails."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="output JSON")
        parser.add_argument(
            "--whole", action="store_true", help=("recompute all hash chains; may take a long time")
        )

    def handle(self, *args: Any, **options: Any) -> None:
        findings = run_checks(full=options["whole"])
        if options["json"]:
            report = {
                "is_well": has_passed(findings),
                "findings": [finding.to_json() for finding in findings],
            }
            self.stdout.write(json.dumps(report, indent=2, ensure_ascii=False))
        else:
            for finding in findings:
                self.print_finding(finding)
        if not has_passed(findings):
            sys.exit(1)

    def print_finding(self, finding: DoctorFinding) -> None:
        styles = {
            FindingState.OK: self.style.SUCCESS,
            FindingState.WARN: self.style.WARNING,
            FindingState.FAIL: self.style.ERROR,
        }
        state = styles[finding.state](f"{finding.state:<4}")
        self.stdout.write(f"{state}  {finding.name}: {finding.message} {finding.advice}".rstrip())

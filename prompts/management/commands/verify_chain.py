"""Verify the hash chains of one workspace or of all workspaces and report the first bad row."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from personas.models import Workspace
from prompts.evidence.integrity.checkpoint_files import list_copied_workspaces
from prompts.evidence.integrity.checkpoint_signer import NoSigningKey
from prompts.evidence.integrity.fault_descriptions import describe_faults
from prompts.evidence.integrity.trusted_keys import get_trusted_keys
from prompts.evidence.integrity.verify import WorkspaceVerification, verify_workspace


class Command(BaseCommand):
    help = (
        "Recompute every version, label move, ledger row, block and checkpoint. Exits with 1 if a "
        "check fails."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", nargs="?", default="", help="workspace slug (default: all)")
        parser.add_argument("--json", action="store_true", help="output JSON")
        parser.add_argument(
            "--against",
            type=Path,
            metavar="FILE",
            help="compare with an external copy of the checkpoints: a file, or a folder of files",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            get_trusted_keys()
            missing = find_missing_workspaces(options["against"]) if options["against"] else set()
        except NoSigningKey as error:
            raise CommandError(error.message) from None
        except OSError as error:
            raise CommandError(f"{options['against']}: {error.strerror}") from None
        results = {
            workspace.slug: self.verify(workspace, options) for workspace in list_named_workspaces(options)
        }
        if options["json"]:
            report = {slug: result.to_json() for slug, result in results.items()}
            self.stdout.write(json.dumps(report, indent=2, ensure_ascii=False))
        if missing and not options["workspace"]:
            ids = ", ".join(map(str, sorted(missing)))
            self.stderr.write(f"The copy has checkpoints of workspaces that are not in the database: {ids}.")
        if (missing and not options["workspace"]) or not all(result.is_sound for result in results.values()):
            sys.exit(1)

    def verify(self, workspace: Workspace, options: dict[str, Any]) -> WorkspaceVerification:
        shows_progress = options["verbosity"] > 1 and not options["json"]
        progress = self.write_progress if shows_progress else None
        result = verify_workspace(workspace, progress, options["against"])
        if not options["json"]:
            self.write_result(workspace, result)
        return result

    def write_progress(self, table: str, checked: int) -> None:
        self.stderr.write(f"  {checked:,} {table}")

    def write_result(self, workspace: Workspace, result: WorkspaceVerification) -> None:
        speed = result.checked / result.seconds if result.seconds else 0
        self.stdout.write(
            f"{workspace.slug}: {result.checked:,} rows in {result.seconds:.1f} s ({speed:,.0f} a second)"
        )
        for table, count in result.rows.items():
            self.stdout.write(f"  {count:>12,} {table}")
        for note in result.notes:
            self.stdout.write(f"  {note}")
        if result.first is None:
            self.stdout.write("  Verified: no tampering found.")
            return
        first, *others = describe_faults(workspace, [vars(fault) for fault in result.faults])
        self.stdout.write(f"  {result.bad:,} errors. The first: {first.name}: {first.reason}")
        for fault in others:
            self.stdout.write(f"  {fault.name}: {fault.reason}")


def find_missing_workspaces(copy: Path) -> set[int]:
    """Return the workspaces that have checkpoints in the copy and are not in the database."""
    return list_copied_workspaces(copy) - set(Workspace.objects.values_list("pk", flat=True))


def list_named_workspaces(options: dict[str, Any]) -> list[Workspace]:
    rows = Workspace.objects.filter(removed_at=None).order_by("pk")
    if not options["workspace"]:
        return list(rows)
    workspaces = list(rows.filter(slug=options["workspace"]))
    if not workspaces:
        raise CommandError(f"Workspace “{options['workspace']}” not found.")
    return workspaces

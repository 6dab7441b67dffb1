"""Recomputes the record of one workspace or of all, and names the first bad row."""

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from personas.models import Workspace
from prompts.integrity.fault_descriptions import describe_faults
from prompts.integrity.verify import WorkspaceVerification, verify_workspace


class Command(BaseCommand):
    help = (
        "Recomputes every version, label move, ledger row, block and checkpoint. Ends with 1 if one is bad."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", nargs="?", default="", help="the workspace's address; all if none")
        parser.add_argument("--json", action="store_true", help="tell it to a program")

    def handle(self, *args: Any, **options: Any) -> None:
        found = {
            workspace.slug: self.verify(workspace, options) for workspace in list_named_workspaces(options)
        }
        if options["json"]:
            told = {slug: one.to_json() for slug, one in found.items()}
            self.stdout.write(json.dumps(told, indent=2, ensure_ascii=False))
        if not all(one.is_sound for one in found.values()):
            sys.exit(1)

    def verify(self, workspace: Workspace, options: dict[str, Any]) -> WorkspaceVerification:
        has_patience = options["verbosity"] > 1 and not options["json"]
        found = verify_workspace(workspace, self.tell_progress if has_patience else None)
        if not options["json"]:
            self.tell(workspace, found)
        return found

    def tell_progress(self, table: str, checked: int) -> None:
        self.stderr.write(f"  {checked:,} {table}")

    def tell(self, workspace: Workspace, found: WorkspaceVerification) -> None:
        speed = found.checked / found.seconds if found.seconds else 0
        self.stdout.write(
            f"{workspace.slug}: {found.checked:,} rows in {found.seconds:.1f} s ({speed:,.0f} a second)"
        )
        for table, count in found.rows.items():
            self.stdout.write(f"  {count:>12,} {table}")
        for note in found.notes:
            self.stdout.write(f"  {note}")
        if found.first is None:
            self.stdout.write("  Everything stands as it was written.")
            return
        first, *others = describe_faults(workspace, [vars(fault) for fault in found.faults])
        self.stdout.write(f"  {found.bad:,} BAD. The first: {first.name}: {first.reason}")
        for fault in others:
            self.stdout.write(f"  {fault.name}: {fault.reason}")


def list_named_workspaces(options: dict[str, Any]) -> list[Workspace]:
    rows = Workspace.objects.order_by("pk")
    if not options["workspace"]:
        return list(rows)
    found = list(rows.filter(slug=options["workspace"]))
    if not found:
        raise CommandError(f"There is no workspace “{options['workspace']}”.")
    return found

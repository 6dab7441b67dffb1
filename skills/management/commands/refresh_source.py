"""Management command: refresh a source in this process, without a worker."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from personas.actors import SYSTEM_ACTOR
from personas.errors import DomainError
from personas.models import Workspace
from skills.models import RefreshRun, Source
from skills.refresh.runs import LostRun, claim_run, fail_run, request_refresh
from skills.refresh.services import refresh_source


class Command(BaseCommand):
    help = "Refresh a source now, without a worker, and print the result."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", help="workspace slug")
        parser.add_argument("source", help="source slug")

    def handle(self, *args: Any, **options: Any) -> None:
        source = self.find_source(options["workspace"], options["source"])
        try:
            requested = request_refresh(source, cause="command", by=SYSTEM_ACTOR)
        except DomainError as error:
            raise CommandError(error.message) from None
        run = claim_run(source.workspace_id, requested.pk)
        if run is None:
            raise CommandError(
                "A worker is already refreshing this source. The next refresh run starts automatically."
            )
        self.write_result(self.run_refresh(run))

    def find_source(self, workspace: str, slug: str) -> Source:
        owner = Workspace.objects.filter(slug=workspace).first()
        source = Source.objects.in_workspace(owner).filter(slug=slug).first() if owner else None
        if source is None:
            raise CommandError(f"Source “{slug}” not found in workspace “{workspace}”.")
        return source

    def run_refresh(self, run: RefreshRun) -> RefreshRun:
        try:
            return refresh_source(run)
        except LostRun:
            raise CommandError("Timed out. Another refresh run has started.") from None
        except BaseException as error:
            fail_run(run, f"Something went wrong: {type(error).__name__}.")
            raise

    def write_result(self, run: RefreshRun) -> None:
        self.stdout.write(f"{run.source}: {run.seen} found, {run.read} read, {run.refused} rejected.")
        for status, count in run.outcome.items():
            self.stdout.write(f"  {count} {status}")
        for refusal in run.refusals:
            self.stdout.write(f"  {refusal['path']}: {refusal['reason']}")
        if run.error:
            raise CommandError(run.error)

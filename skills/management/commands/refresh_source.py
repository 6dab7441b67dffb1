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
    help = "Looks at a source here and now, without a worker, and tells what came of it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", help="the workspace's address")
        parser.add_argument("source", help="the source's address")

    def handle(self, *args: Any, **options: Any) -> None:
        source = self.find_source(options["workspace"], options["source"])
        try:
            requested = request_refresh(source, cause="command", by=SYSTEM_ACTOR)
        except DomainError as error:
            raise CommandError(error.message) from None
        run = claim_run(source.workspace_id, requested.pk)
        if run is None:
            raise CommandError("A worker is looking at it already; the next look follows by itself.")
        self.write_result(self.run_refresh(run))

    def find_source(self, workspace: str, slug: str) -> Source:
        owner = Workspace.objects.filter(slug=workspace).first()
        source = Source.objects.in_workspace(owner).filter(slug=slug).first() if owner else None
        if source is None:
            raise CommandError(f"There is no source “{slug}” in a workspace “{workspace}”.")
        return source

    def run_refresh(self, run: RefreshRun) -> RefreshRun:
        try:
            return refresh_source(run)
        except LostRun:
            raise CommandError("It took so long that someone else began anew.") from None
        except BaseException as error:
            fail_run(run, f"Something went wrong: {type(error).__name__}.")
            raise

    def write_result(self, run: RefreshRun) -> None:
        self.stdout.write(f"{run.source}: {run.seen} seen, {run.read} read, {run.refused} refused.")
        for state, count in run.outcome.items():
            self.stdout.write(f"  {count} {state}")
        for refusal in run.refusals:
            self.stdout.write(f"  {refusal['path']}: {refusal['reason']}")
        if run.error:
            raise CommandError(run.error)

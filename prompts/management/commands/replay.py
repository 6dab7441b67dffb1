"""Print a served prompt again, byte for byte, and write the evidence for it."""

import json
import sys
from argparse import ArgumentParser
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from personas.errors import DomainError
from personas.models import Workspace
from prompts.evidence.replay.evidence import build_evidence
from prompts.evidence.replay.services import (
    Replay,
    build_replay,
    list_request_entries,
    replay_entry,
    replay_prompt_by_slugs,
)
from prompts.models import PRODUCTION


class Command(BaseCommand):
    help = "Print the exact bytes that were served, or that a label pointed to at a given time."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", nargs="?", help="workspace slug; required if there are several")
        parser.add_argument("--ledger", type=int, metavar="ID", help="ID of a ledger row")
        parser.add_argument("--request", metavar="ID", help="ID of a request")
        parser.add_argument("--agent", metavar="SLUG")
        parser.add_argument("--channel", metavar="SLUG")
        parser.add_argument("--label", default=PRODUCTION, metavar="NAME")
        parser.add_argument("--at", metavar="ISO", help="a time; UTC unless it has an offset")
        parser.add_argument(
            "--evidence", metavar="FILE", help=("write the evidence to this file, even if text was erased")
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            replay = self.load_replay(get_chosen_workspace(options["workspace"]), options)
            if options["evidence"]:
                self.write_evidence(replay, Path(options["evidence"]))
            replay.require_exact()
        except DomainError as error:
            raise CommandError(error.message) from None
        self.write_summary(replay)
        # Written as bytes to avoid line ending and encoding conversions of the platform.
        sys.stdout.buffer.write(replay.text.encode())
        sys.stdout.buffer.flush()

    def load_replay(self, workspace: Workspace, options: dict[str, Any]) -> Replay:
        if options["ledger"] is not None:
            return replay_entry(workspace, options["ledger"])
        if options["request"]:
            return self.replay_request(workspace, options["request"])
        if not (options["agent"] and options["channel"] and options["at"]):
            raise CommandError("Pass --ledger, or --request, or --agent with --channel and --at.")
        at = parse_replay_time(options["at"])
        return replay_prompt_by_slugs(workspace, options["agent"], options["channel"], at, options["label"])

    def replay_request(self, workspace: Workspace, request_id: str) -> Replay:
        entries = list_request_entries(workspace, request_id)
        if len(entries) > 1:
            rows = "".join(
                f"\n  --ledger {row.pk}: {row.prompt}, version {row.version.number}" for row in entries
            )
            raise CommandError(f"{len(entries)} prompts were served to that request. Choose one:{rows}")
        return build_replay(entries[0])

    def write_evidence(self, replay: Replay, path: Path) -> None:
        data = json.dumps(build_evidence(replay), indent=2, ensure_ascii=False)
        path.write_text(f"{data}\n", encoding="utf-8")
        self.stderr.write(f"Evidence written to {path}.")

    def write_summary(self, replay: Replay) -> None:
        """Write a summary of the replay to standard error; standard output contains only the prompt."""
        entry = replay.entry
        context = (
            f"served to {entry.reader_label} at {entry.at.isoformat()}"
            if entry
            else f"at {replay.at.isoformat()}"
        )
        self.stderr.write(
            f"{replay.prompt}, version {replay.version.number}, {replay.label}, {context}; "
            f"SHA-256 {replay.digest}"
        )


def get_chosen_workspace(slug: str | None) -> Workspace:
    workspaces = list(Workspace.objects.filter(slug=slug) if slug else Workspace.objects.all()[:2])
    if len(workspaces) == 1:
        return workspaces[0]
    raise CommandError(f"Workspace “{slug}” not found." if slug else "Pass the workspace slug.")


def parse_replay_time(value: str) -> datetime:
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        raise CommandError(f"{value}: not a time such as 2026-03-07T14:55:05Z.") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)

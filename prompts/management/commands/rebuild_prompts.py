"""Rebuild the prompts of one agent, one workspace or all workspaces."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import QuerySet

from personas.actors import SYSTEM_ACTOR
from personas.errors import DomainError
from personas.models import Agent, Channel, Workspace
from prompts.publishing.builds.causes import request_rebuild
from prompts.publishing.builds.progress import list_agent_channels, list_unbuilt_prompts
from prompts.publishing.builds.services import RebuildResult, rebuild_agent, rebuild_agents
from prompts.tasks import enqueue_rebuilds


class Command(BaseCommand):
    help = (
        "Rebuild prompts now. Prompts whose text is unchanged get no new version. Exits with 1 if a "
        "prompt could not be built."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--workspace", metavar="SLUG", help="only this workspace (default: all)")
        parser.add_argument("--agent", metavar="SLUG", help="only this agent, on all its channels")
        parser.add_argument(
            "--channel",
            metavar="SLUG",
            help=("only agents on this channel; each is rebuilt on all its channels"),
        )
        parser.add_argument("--later", action="store_true", help="let workers rebuild the prompts")

    def handle(self, *args: Any, **options: Any) -> None:
        agents_by_workspace = [
            (workspace, list_selected_agents(workspace, options))
            for workspace in list_selected_workspaces(options)
        ]
        failed = sum(self.rebuild(workspace, agents, options) for workspace, agents in agents_by_workspace)
        if failed:
            raise CommandError(
                f"{failed:,} prompts could not be built. Bots still get the previous versions."
            )

    def rebuild(self, workspace: Workspace, agents: list[Agent], options: dict[str, Any]) -> int:
        """Rebuild or enqueue the agents; return the number of prompts that could not be built."""
        ids = [agent.pk for agent in agents if not agent.is_archived]
        # Archived agents are skipped, but naming one with --agent is an error, with and without --later.
        if options["later"] and (ids or not options["agent"]):
            self.enqueue(workspace, ids)
            return 0
        result = rebuild_single_agent(agents[0]) if options["agent"] else rebuild_agents(workspace, ids)
        self.write_result(workspace, result, ids)
        return result.failed

    def enqueue(self, workspace: Workspace, ids: list[int]) -> None:
        # The rebuild is recorded in the database first, so an unavailable message broker only delays it.
        request_rebuild(workspace, ids, by=SYSTEM_ACTOR)
        enqueue_rebuilds(workspace.pk)
        self.stdout.write(
            f"{workspace.slug}: {list_agent_channels(workspace, ids).count():,} prompts queued for "
            "the workers"
        )

    def write_result(self, workspace: Workspace, result: RebuildResult, ids: list[int]) -> None:
        self.stdout.write(
            f"{workspace.slug}: {len(result.versions):,} built, {result.unchanged:,} unchanged, "
            f"{result.failed:,} failed"
        )
        for version in result.versions:
            self.stdout.write(f"  built {version.prompt}: version {version.number}")
        if result.failed:
            for prompt in list_unbuilt_prompts(workspace).filter(agent__in=ids):
                self.stdout.write(f"  failed {prompt}: {prompt.problem}")


def rebuild_single_agent(agent: Agent) -> RebuildResult:
    try:
        return rebuild_agent(agent)
    except DomainError as error:
        raise CommandError(error.message) from None


def list_selected_workspaces(options: dict[str, Any]) -> list[Workspace]:
    rows = Workspace.objects.order_by("pk")
    if options["workspace"]:
        rows = rows.filter(slug=options["workspace"])
        if not rows:
            raise CommandError(f"Workspace “{options['workspace']}” not found.")
    if (options["agent"] or options["channel"]) and len(rows) > 1:
        raise CommandError("There are several workspaces. Name one with --workspace.")
    return list(rows)


def list_selected_agents(workspace: Workspace, options: dict[str, Any]) -> list[Agent]:
    """List the agents to rebuild; an unknown agent or channel name is an error, not an empty selection."""
    rows = Agent.objects.in_workspace(workspace).order_by("pk")
    if options["channel"]:
        rows = filter_by_channel(workspace, options["channel"], rows)
    if not options["agent"]:
        return list(rows)
    agents = list(rows.filter(slug=options["agent"]))
    if not agents:
        where = f" on “{options['channel']}”" if options["channel"] else ""
        raise CommandError(f"Agent “{options['agent']}”{where} not found in “{workspace.slug}”.")
    return agents


def filter_by_channel(workspace: Workspace, channel: str, rows: QuerySet[Agent]) -> QuerySet[Agent]:
    if not Channel.objects.in_workspace(workspace).filter(slug=channel, archived_at=None).exists():
        raise CommandError(f"Active channel “{channel}” not found in “{workspace.slug}”.")
    return rows.filter(channel_links__channel__slug=channel)

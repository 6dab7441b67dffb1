"""Builds prompts by hand: of one agent, of a workspace, or all."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import QuerySet

from personas.actors import SYSTEM_ACTOR
from personas.errors import DomainError
from personas.models import Agent, Channel, Workspace
from prompts.builds.causes import request_rebuild
from prompts.builds.progress import list_agent_channels, list_unbuilt_prompts
from prompts.builds.services import RebuildResult, rebuild_agent, rebuild_agents
from prompts.tasks import enqueue_rebuilds


class Command(BaseCommand):
    help = (
        "Builds prompts anew, here and now. Where the words are as before there is no new version. "
        "Ends with 1 if a prompt could not be built."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--workspace", metavar="SLUG", help="only this workspace; all if none is named")
        parser.add_argument("--agent", metavar="SLUG", help="only this agent, on all its channels")
        parser.add_argument(
            "--channel", metavar="SLUG", help="only agents that speak on this channel; each on all its own"
        )
        parser.add_argument("--later", action="store_true", help="leave it to the workers")

    def handle(self, *args: Any, **options: Any) -> None:
        chosen = [(home, list_selected_agents(home, options)) for home in list_selected_workspaces(options)]
        failed = sum(self.take_on(home, agents, options) for home, agents in chosen)
        if failed:
            raise CommandError(f"{failed:,} could not be built: bots still get what they got before.")

    def take_on(self, home: Workspace, agents: list[Agent], options: dict[str, Any]) -> int:
        """Now or later; how many prompts could not be built."""
        ids = [agent.pk for agent in agents if not agent.is_archived]
        # An archived agent is left out among many; where it is named it is refused, now and for later.
        if options["later"] and (ids or not options["agent"]):
            self.leave_to_workers(home, ids)
            return 0
        built = rebuild_single_agent(agents[0]) if options["agent"] else rebuild_agents(home, ids)
        self.tell(home, built, ids)
        return built.failed

    def leave_to_workers(self, home: Workspace, ids: list[int]) -> None:
        # The rows say what is to be done, so a broker that is down only delays it.
        request_rebuild(home, ids, by=SYSTEM_ACTOR)
        enqueue_rebuilds(home.pk, ids)
        self.stdout.write(f"{home.slug}: {list_agent_channels(home, ids).count():,} left to the workers")

    def tell(self, home: Workspace, built: RebuildResult, ids: list[int]) -> None:
        self.stdout.write(
            f"{home.slug}: {len(built.versions):,} built, {built.unchanged:,} unchanged, "
            f"{built.failed:,} failed"
        )
        for version in built.versions:
            self.stdout.write(f"  built {version.prompt}: version {version.number}")
        if built.failed:
            for prompt in list_unbuilt_prompts(home).filter(agent__in=ids):
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
            raise CommandError(f"There is no workspace “{options['workspace']}”.")
    if (options["agent"] or options["channel"]) and len(rows) > 1:
        raise CommandError("There are several workspaces. Name one with --workspace.")
    return list(rows)


def list_selected_agents(home: Workspace, options: dict[str, Any]) -> list[Agent]:
    """Named ones must be there: a slip of the pen is not the same as nothing to do."""
    rows = Agent.objects.in_workspace(home).order_by("pk")
    if options["channel"]:
        rows = filter_by_channel(home, options["channel"], rows)
    if not options["agent"]:
        return list(rows)
    found = list(rows.filter(slug=options["agent"]))
    if not found:
        where = f" on “{options['channel']}”" if options["channel"] else ""
        raise CommandError(f"There is no agent “{options['agent']}”{where} in “{home.slug}”.")
    return found


def filter_by_channel(home: Workspace, channel: str, rows: QuerySet[Agent]) -> QuerySet[Agent]:
    if not Channel.objects.in_workspace(home).filter(slug=channel, archived_at=None).exists():
        raise CommandError(f"There is no channel “{channel}” in use in “{home.slug}”.")
    return rows.filter(channel_links__channel__slug=channel)

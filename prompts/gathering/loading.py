"""The rows that the prompts of some agents are made of, as they are saved; each kind read once."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

from django.db.models import Q

from personas.models import Agent, AgentChannel, AgentTool, Channel, Memory, Responsibility, Workspace
from prompts.gathering.lines import lines_of
from prompts.models import PromptSettings
from skills.selectors.in_use import Given, given_to_all
from skills.selectors.one_agent import OneAgent

# What each agent is joined with; whether it reads files at all is then known too.
WHOLE = ("identity", "soul", "user_profile", "context")


class Loaded:
    """Shared by all who look at the same agents: as they are saved, and as a draft would make them."""

    def __init__(self, workspace: Workspace | int, agents: Sequence[Agent | int]) -> None:
        self.workspace = workspace
        self.ids = [agent if isinstance(agent, int) else agent.pk for agent in agents]

    @classmethod
    def around(cls, workspace: Workspace, agent: Agent, channels: Sequence[Channel]) -> "Loaded":
        """One agent that was loaded whole, and where it speaks: neither is asked for again."""
        loaded = cls(workspace, [agent])
        loaded.agents = [] if agent.is_archived else [agent]
        loaded.channels = {agent.pk: list(channels)}
        return loaded

    @cached_property
    def agents(self) -> list[Agent]:
        rows = Agent.objects.in_workspace(self.workspace).filter(pk__in=self.ids, archived_at=None)
        return list(rows.select_related(*WHOLE).order_by("pk"))

    @cached_property
    def channels(self) -> dict[int, list[Channel]]:
        """Where each agent speaks, in its order."""
        links = AgentChannel.objects.in_workspace(self.workspace).filter(
            agent__in=self.ids, channel__archived_at=None
        )
        found: dict[int, list[Channel]] = defaultdict(list)
        for link in links.select_related("channel").order_by("position", "pk"):
            found[link.agent_id].append(link.channel)
        return found

    @cached_property
    def tool_links(self) -> list[AgentTool]:
        links = AgentTool.objects.in_workspace(self.workspace).filter(agent__in=self.ids)
        return list(links.select_related("tool").order_by("position", "pk"))

    @cached_property
    def lines(self) -> tuple[list[Responsibility], list[Memory]]:
        return lines_of(self.workspace, self.ids)

    @property
    def duties(self) -> list[Responsibility]:
        return self.lines[0]

    @property
    def memories(self) -> list[Memory]:
        return self.lines[1]

    @cached_property
    def settings(self) -> list[PromptSettings]:
        rows = PromptSettings.objects.in_workspace(self.workspace).filter(archived_at=None)
        wanted = rows.filter(Q(agent=None) | Q(agent__in=self.ids))
        return list(wanted.select_related("identity", "soul", "user_profile"))

    @cached_property
    def given(self) -> dict[int, Given]:
        return given_now(self.workspace, self.agents)


def given_now(workspace: Workspace | int, agents: Sequence[Agent]) -> dict[int, Given]:
    """A single one has a shelf of its own, which asks for no more than concerns it."""
    if len(agents) != 1:
        return given_to_all(workspace, agents)
    return {agent.pk: OneAgent(agent, is_whole=True).given(agent) for agent in agents}

"""The rows that the prompts of some agents are made of, as they are saved; all read in one question."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from django.db.models import Q, QuerySet

from personas.models import (
    Agent,
    AgentChannel,
    AgentTool,
    Channel,
    Memory,
    MemoryState,
    Responsibility,
    Tool,
    Workspace,
)
from prompts.models import PromptSettings
from skills.agent_context.effective import AgentContextLoader, EffectiveContext, get_effective_contexts
from skills.agent_context.preload import WorkspaceSkills, build_skill_queries

# What each agent is joined with; whether it reads files at all is then known too.
AGENT_RELATIONS = ("identity", "soul", "user_profile", "context")
# What prompts are made of; the rest would be asked for when it is looked at.
TEXT_COLUMNS = ("id", "workspace_id", "revision", "agent_id", "text")

InputQueries = dict[str, "QuerySet[Any, Any]"]


def build_input_queries(workspace: Workspace | int, agents: Sequence[int]) -> InputQueries:
    """By what is loaded of them."""
    links = AgentTool.objects.in_workspace(workspace).filter(agent__in=agents)
    return {
        "agents": list_full_agents(workspace).filter(pk__in=agents, archived_at=None).order_by("pk"),
        "channels": list_channel_links(workspace, agents),
        "tool_links": links.order_by("position", "pk"),
        # Each once, however many agents have it.
        "tools": Tool.objects.in_workspace(workspace).filter(pk__in=links.values("tool")),
        "duties": list_responsibilities(workspace, agents),
        "memories": list_active_memories(workspace, agents),
        "settings": list_prompt_settings(workspace, agents),
    }


def list_full_agents(workspace: Workspace | int) -> "QuerySet[Agent]":
    return Agent.objects.in_workspace(workspace).select_related(*AGENT_RELATIONS)


def list_channel_links(workspace: Workspace | int, agents: Sequence[int]) -> "QuerySet[AgentChannel]":
    links = AgentChannel.objects.in_workspace(workspace).filter(agent__in=agents, channel__archived_at=None)
    return links.select_related("channel").order_by("position", "pk")


def list_responsibilities(workspace: Workspace | int, agents: Sequence[int]) -> "QuerySet[Responsibility]":
    rows = Responsibility.objects.in_workspace(workspace).filter(agent__in=agents, archived_at=None)
    return rows.only(*TEXT_COLUMNS, "title", "position").order_by("position", "pk")


def list_active_memories(workspace: Workspace | int, agents: Sequence[int]) -> "QuerySet[Memory]":
    """Also shared ones; in no order, for they are the many."""
    rows = Memory.objects.in_workspace(workspace).filter(archived_at=None, state=MemoryState.ACTIVE)
    rows = rows.filter(Q(agent=None) | Q(agent__in=agents))
    return rows.only(*TEXT_COLUMNS, "valid_from", "valid_until").order_by()


def list_prompt_settings(workspace: Workspace | int, agents: Sequence[int]) -> "QuerySet[PromptSettings]":
    rows = PromptSettings.objects.in_workspace(workspace).filter(archived_at=None)
    rows = rows.filter(Q(agent=None) | Q(agent__in=agents))
    return rows.select_related("identity", "soul", "user_profile")


__all__ = ["AGENT_RELATIONS", "LoadedRows", "load_effective_files"]


class LoadedRows:
    """Shared by all who look at the same agents: as they are saved, and as a draft would make them."""

    def __init__(
        self, workspace: Workspace | int, agents: Sequence[Agent | int], *, is_stocked: bool = False
    ) -> None:
        self.workspace = workspace
        self.ids = [agent if isinstance(agent, int) else agent.pk for agent in agents]
        # A single one has a shelf of its own, which reads no more than concerns it; but that is asked apart.
        self.is_stocked = is_stocked or len(self.ids) != 1

    @classmethod
    def around(cls, workspace: Workspace, agent: Agent, channels: Sequence[Channel]) -> "LoadedRows":
        """One agent that was loaded whole, and where it speaks: neither is asked for again."""
        loaded = cls(workspace, [agent])
        loaded.agents = [] if agent.is_archived else [agent]
        loaded.channels = {agent.pk: list(channels)}
        return loaded

    @cached_property
    def rows(self) -> dict[str, list[Any]]:
        """What was laid here before is not asked for."""
        about = build_input_queries(self.workspace, self.ids)
        asked = {name: rows for name, rows in about.items() if name not in self.__dict__}
        stock = build_skill_queries(self.workspace) if self.is_stocked else []
        answers = {name: list(rows) for name, rows in asked.items()}
        return answers | {"stock": [list(rows) for rows in stock]}

    @cached_property
    def agents(self) -> list[Agent]:
        return self.rows["agents"]

    @cached_property
    def channels(self) -> dict[int, list[Channel]]:
        """Where each agent speaks, in its order."""
        found: dict[int, list[Channel]] = defaultdict(list)
        for link in self.rows["channels"]:
            found[link.agent_id].append(link.channel)
        return found

    @cached_property
    def tool_links(self) -> list[AgentTool]:
        tools = {tool.pk: tool for tool in self.rows["tools"]}
        for link in self.rows["tool_links"]:
            link.tool = tools[link.tool_id]
        return self.rows["tool_links"]

    @property
    def duties(self) -> list[Responsibility]:
        """In the order of their agents."""
        return self.rows["duties"]

    @cached_property
    def memories(self) -> list[Memory]:
        """The oldest first: a stable order keeps the text, and so the version, unchanged."""
        return sorted(self.rows["memories"], key=lambda row: row.pk)

    @property
    def settings(self) -> list[PromptSettings]:
        return self.rows["settings"]

    @property
    def stock(self) -> WorkspaceSkills | None:
        return WorkspaceSkills(*self.rows["stock"]) if self.is_stocked else None

    @cached_property
    def given(self) -> dict[int, EffectiveContext]:
        return load_effective_files(self.workspace, self.agents, self.stock)


def load_effective_files(
    workspace: Workspace | int, agents: Sequence[Agent], stock: WorkspaceSkills | None = None
) -> dict[int, EffectiveContext]:
    """By agent, from what is in stock where that was read."""
    if len(agents) != 1 or stock is not None:
        return get_effective_contexts(workspace, agents, stock=stock)
    return {agent.pk: AgentContextLoader(agent, is_whole=True).given(agent) for agent in agents}

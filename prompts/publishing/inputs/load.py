"""Load the saved rows that the prompts of some agents are built from, with a constant number of queries."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from django.db.models import Q, QuerySet

from core.db.fast import BoundQuery, CompiledQueries, fetch_together
from personas.models import (
    Agent,
    AgentChannel,
    AgentTool,
    Channel,
    Memory,
    MemoryStatus,
    Responsibility,
    Tool,
    Workspace,
)
from prompts.models import PromptSettings
from skills.agent_context.effective import (
    CANDIDATE_QUERIES,
    AgentContextLoader,
    EffectiveContext,
    get_effective_contexts,
)
from skills.agent_context.preload import SKILL_QUERIES, WorkspaceSkills

# Relations that the query for agents joins. `context` is the agent's source of files; it may be missing.
AGENT_RELATIONS = ("identity", "soul", "user_profile", "context")
# The columns that prompts need; other columns are deferred.
TEXT_COLUMNS = ("id", "workspace_id", "revision", "agent_id", "text")

# Names of attributes of LoadedRows, in the order of `build_input_queries`.
INPUT_NAMES = ("agents", "channels", "tool_links", "tools", "responsibilities", "memories", "settings")


def build_input_queries(workspace: Workspace | int, agents: Sequence[int]) -> list["QuerySet[Any, Any]"]:
    """Build the queries for the rows of these agents."""
    links = AgentTool.objects.in_workspace(workspace).filter(agent__in=agents)
    return [
        list_full_agents(workspace).filter(pk__in=agents, archived_at=None).order_by("pk"),
        list_channel_links(workspace, agents),
        links.order_by("position", "pk"),
        # Separate from the links, so that a tool shared by many agents is loaded once.
        Tool.objects.in_workspace(workspace).filter(pk__in=links.values("tool")).select_related("agent"),
        list_responsibilities(workspace, agents),
        list_active_memories(workspace, agents),
        list_prompt_settings(workspace, agents),
    ]


INPUT_QUERIES = CompiledQueries(build_input_queries)


def list_full_agents(workspace: Workspace | int) -> "QuerySet[Agent]":
    return Agent.objects.in_workspace(workspace).select_related(*AGENT_RELATIONS)


def list_channel_links(workspace: Workspace | int, agents: Sequence[int]) -> "QuerySet[AgentChannel]":
    links = AgentChannel.objects.in_workspace(workspace).filter(agent__in=agents, channel__archived_at=None)
    return links.select_related("channel").order_by("position", "pk")


def list_responsibilities(workspace: Workspace | int, agents: Sequence[int]) -> "QuerySet[Responsibility]":
    rows = Responsibility.objects.in_workspace(workspace).filter(agent__in=agents, archived_at=None)
    return rows.only(*TEXT_COLUMNS, "title", "position").order_by("position", "pk")


def list_active_memories(workspace: Workspace | int, agents: Sequence[int]) -> "QuerySet[Memory]":
    """List the active memories of these agents and the memories shared by all agents, unsorted.

    There are many of them, so `LoadedRows.memories` sorts them in Python.
    """
    rows = Memory.objects.in_workspace(workspace).filter(archived_at=None, status=MemoryStatus.ACTIVE)
    rows = rows.filter(Q(agent=None) | Q(agent__in=agents))
    return rows.only(*TEXT_COLUMNS, "valid_from", "valid_until").order_by()


def list_prompt_settings(workspace: Workspace | int, agents: Sequence[int]) -> "QuerySet[PromptSettings]":
    rows = PromptSettings.objects.in_workspace(workspace).filter(archived_at=None)
    # Include settings of agents that are tools: tool descriptions and signatures are derived from them.
    links = AgentTool.objects.in_workspace(workspace).filter(agent__in=agents, tool__agent__isnull=False)
    condition = Q(agent=None) | Q(agent__in=agents) | Q(agent__in=links.values("tool__agent"))
    return rows.filter(condition).select_related("identity", "soul", "user_profile")


__all__ = ["AGENT_RELATIONS", "LoadedRows", "load_effective_files"]


class LoadedRows:
    """The saved rows of some agents, loaded on first access.

    A preview uses the same rows for the prompt with the draft and for the prompt without it.
    """

    def __init__(
        self, workspace: Workspace | int, agents: Sequence[Agent | int], *, with_skills: bool = False
    ) -> None:
        self.workspace = workspace
        self.ids = [agent if isinstance(agent, int) else agent.pk for agent in agents]
        # Whether all skills of the workspace are loaded. For a single agent this is not needed:
        # AgentContextLoader reads the skills of that agent only, in separate queries.
        self.with_skills = with_skills or len(self.ids) != 1

    @classmethod
    def for_agent(cls, workspace: Workspace, agent: Agent, channels: Sequence[Channel]) -> "LoadedRows":
        """Build LoadedRows for an agent that is already loaded with its relations and channels.

        Agent and channels are not queried again.
        """
        loaded = cls(workspace, [agent])
        loaded.agents = [] if agent.is_archived else [agent]
        loaded.channels = {agent.pk: list(channels)}
        return loaded

    @cached_property
    def rows(self) -> dict[str, list[Any]]:
        """The results of the queries by name, without queries for attributes that `for_agent` has set."""
        return self.name_results(fetch_together(self.list_queries()))

    @property
    def query_names(self) -> list[str]:
        return [name for name in INPUT_NAMES if name not in self.__dict__]

    def list_queries(self) -> list[BoundQuery]:
        bound = dict(zip(INPUT_NAMES, INPUT_QUERIES.bind(self.workspace, self.ids), strict=True))
        if self.with_skills:
            skill_queries = SKILL_QUERIES.bind(self.workspace, ())
        else:
            # Use the queries for an agent without a source of files, because most agents have none.
            skill_queries = CANDIDATE_QUERIES.bind(self.workspace, self.ids[0], [])
        return [*[bound[name] for name in self.query_names], *skill_queries]

    def name_results(self, results: Sequence[list[Any]]) -> dict[str, list[Any]]:
        """Return the results of `list_queries` by name."""
        names = self.query_names
        named = dict(zip(names, results[: len(names)], strict=True))
        return named | {"skills": list(results[len(names) :])}

    @cached_property
    def agents(self) -> list[Agent]:
        return self.rows["agents"]

    @cached_property
    def channels(self) -> dict[int, list[Channel]]:
        """The channels of each agent, in order."""
        channels: dict[int, list[Channel]] = defaultdict(list)
        for link in self.rows["channels"]:
            channels[link.agent_id].append(link.channel)
        return channels

    @cached_property
    def tool_links(self) -> list[AgentTool]:
        tools = {tool.pk: tool for tool in self.rows["tools"]}
        for link in self.rows["tool_links"]:
            link.tool = tools[link.tool_id]
        return self.rows["tool_links"]

    @property
    def responsibilities(self) -> list[Responsibility]:
        """The responsibilities of all agents, in order."""
        return self.rows["responsibilities"]

    @cached_property
    def memories(self) -> list[Memory]:
        """Memories, oldest first: a stable order keeps the text, and therefore the version, unchanged."""
        return sorted(self.rows["memories"], key=lambda row: row.pk)

    @property
    def settings(self) -> list[PromptSettings]:
        return self.rows["settings"]

    @cached_property
    def workspace_skills(self) -> WorkspaceSkills | None:
        if not self.with_skills:
            return None
        return WorkspaceSkills.from_rows(self.workspace, self.rows["skills"])

    @cached_property
    def effective_contexts(self) -> dict[int, EffectiveContext]:
        if self.with_skills or len(self.agents) != 1:
            return load_effective_files(self.workspace, self.agents, self.workspace_skills)
        [agent] = self.agents
        loader = AgentContextLoader(agent, has_contents=True, rows_without_source=self.rows["skills"])
        return {agent.pk: loader.get_context(agent)}


def load_effective_files(
    workspace: Workspace | int, agents: Sequence[Agent], workspace_skills: WorkspaceSkills | None = None
) -> dict[int, EffectiveContext]:
    """Return the effective context by agent id. If `workspace_skills` is given, no skills are queried."""
    if len(agents) != 1 or workspace_skills is not None:
        return get_effective_contexts(workspace, agents, workspace_skills=workspace_skills)
    return {agent.pk: AgentContextLoader(agent, has_contents=True).get_context(agent) for agent in agents}

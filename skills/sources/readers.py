"""Resolve which source, working directory and rules each agent uses, itself or inherited from an ancestor."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.db.models import Exists, OuterRef

from personas.models import Agent, Workspace
from skills.discovery import list_applicable_files
from skills.discovery.harnesses import HARNESSES, Harness
from skills.models import AgentContext, RuleSet, Source
from skills.rule_sets.effective import get_custom_harnesses


@dataclass(frozen=True)
class SourceReader:
    """The source, rules and working directory of one agent."""

    agent: Agent
    source: Source
    harness: Harness
    working_directory: str
    # The agent whose AgentContext row applies: this agent, or the ancestor that it inherits from.
    chosen_by: Agent

    @property
    def is_inherited(self) -> bool:
        return self.chosen_by.pk != self.agent.pk

    def paths(self, stored: Collection[str]) -> list[tuple[str, str]]:
        """List kind and path of those stored files that this agent's rules match, in rule order."""
        return [
            (kind, path) for kind, path in list_applicable_files(self.harness, self.working_directory, stored)
        ]


def get_readers_by_agent(
    workspace: Workspace | int, drafted: Iterable[Agent] = ()
) -> dict[int, SourceReader]:
    """Return the readers of all agents that have a source, by agent id, with three queries in total.

    `drafted` are agents with unsaved edits. They are used instead of the saved agents with the same ids,
    because an edited working directory changes which files apply.
    """
    rows = AgentContext.objects.in_workspace(workspace).select_related("source__grant", "source__workspace")
    choices = {row.agent_id: row for row in rows}
    if not choices:
        return {}
    agents = {row.pk: row for row in Agent.objects.in_workspace(workspace)}
    agents |= {agent.pk: agent for agent in drafted}
    rules = HARNESSES | get_custom_harnesses(workspace)
    readers = (build_source_reader(agent, agents, choices, rules) for agent in agents.values())
    return {reader.agent.pk: reader for reader in readers if reader}


@dataclass(frozen=True)
class AgentLineage:
    """An agent and its ancestors by id, nearest first, with the AgentContext rows of those that have one."""

    line: dict[int, Agent]
    choices: dict[int, AgentContext]
    # Whether the workspace has custom rules for a harness in `choices`.
    has_own_rules: bool


def load_agent_lineage(agent: Agent) -> AgentLineage:
    """Load the lineage of one agent with one query, plus one query for each ancestor above the parent.

    No query is made if the loaded agent already shows that it has no source, see `has_no_source`.
    """
    if has_no_source(agent):
        return AgentLineage({agent.pk: agent}, {}, has_own_rules=False)
    agents = {ancestor.pk: ancestor for ancestor in load_ancestors(agent)}
    custom_rules = RuleSet.objects.in_workspace(agent.workspace_id).filter(
        harness=OuterRef("harness"), archived_at=None
    )
    rows = AgentContext.objects.in_workspace(agent.workspace_id).filter(agent__in=list(agents))
    rows = rows.annotate(has_own_rules=Exists(custom_rules)).select_related(
        "source__grant", "source__workspace"
    )
    choices: dict[int, AgentContext] = {}
    has_own_rules = False
    for row in rows:
        choices[row.agent_id] = row
        has_own_rules |= row.has_own_rules
    return AgentLineage(agents, choices, has_own_rules)


def has_no_source(agent: Agent) -> bool:
    """Return whether the agent certainly has no source, without a query.

    That is the case if the agent has no parent, and its `context` was loaded with it and is None.
    """
    return agent.parent_id is None and agent._state.fields_cache.get("context", agent) is None


def load_ancestors(agent: Agent) -> Iterable[Agent]:
    """Iterate over the agent and its ancestors. Each ancestor is loaded when the iteration reaches it."""
    seen_ids: set[int] = set()
    current: Agent | None = agent
    while current is not None and current.pk not in seen_ids:
        seen_ids.add(current.pk)
        yield current
        current = current.parent


def get_source_reader(agent: Agent, lineage: AgentLineage | None = None) -> SourceReader | None:
    """Return the reader of one agent, or None if the agent reads no source."""
    lineage = lineage or load_agent_lineage(agent)
    rules = HARNESSES | (get_custom_harnesses(agent.workspace_id) if lineage.has_own_rules else {})
    return build_source_reader(agent, lineage.line, lineage.choices, rules)


def build_source_reader(
    agent: Agent, agents: dict[int, Agent], choices: dict[int, AgentContext], rules: dict[str, Harness]
) -> SourceReader | None:
    lineage = list(iter_ancestors(agent, agents))
    chooser = next((ancestor for ancestor in lineage if ancestor.pk in choices), None)
    if chooser is None:
        return None
    choice = choices[chooser.pk]
    if choice.source is None or choice.source.is_archived or choice.harness not in rules:
        return None
    up_to_chooser = lineage[: lineage.index(chooser) + 1]
    folder = next(
        (ancestor.working_directory for ancestor in up_to_chooser if ancestor.working_directory), ""
    )
    return SourceReader(
        agent, choice.source, rules[choice.harness], get_relative_directory(folder, choice.source), chooser
    )


def iter_ancestors(agent: Agent, agents: dict[int, Agent]) -> Iterable[Agent]:
    """Iterate over the agent and its ancestors, nearest first, looking up parents in `agents`.

    Cycles cannot be stored. If there were one, the iteration would stop at the first repeated agent.
    """
    seen_ids: set[int] = set()
    current: Agent | None = agent
    while current is not None and current.pk not in seen_ids:
        seen_ids.add(current.pk)
        yield current
        current = agents.get(current.parent_id) if current.parent_id is not None else None


def get_relative_directory(folder: str, source: Source) -> str:
    """Return the working directory as a path relative to the source's root.

    Return an empty string, which means the root, for an absolute path outside of the root.
    """
    if not folder.startswith("/"):
        return folder.strip("/")
    grant = source.grant.path if source.grant else ""
    root = "/".join(part for part in (grant.rstrip("/"), source.folder) if part)
    is_inside = f"{folder.rstrip('/')}/".startswith(f"{root}/") if root else False
    return folder[len(root) :].strip("/") if is_inside else ""

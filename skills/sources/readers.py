"""Which source each agent reads, from which folder and by whose rules, inheritance worked out."""

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
    """What an agent can see of the disk."""

    agent: Agent
    source: Source
    harness: Harness
    working_directory: str
    # The agent whose choice this is: itself, or one above.
    chosen_by: Agent

    @property
    def is_inherited(self) -> bool:
        return self.chosen_by.pk != self.agent.pk

    def paths(self, stored: Collection[str]) -> list[tuple[str, str]]:
        """Kind and path of the stored files this agent is given, in order."""
        return [
            (kind, path) for kind, path in list_applicable_files(self.harness, self.working_directory, stored)
        ]


def get_readers_by_agent(
    workspace: Workspace | int, drafted: Iterable[Agent] = ()
) -> dict[int, SourceReader]:
    """By agent; those that read nowhere are left out. Three queries, however many agents.

    Drafted agents stand in for those that are saved: where one works says what it is given.
    """
    rows = AgentContext.objects.in_workspace(workspace).select_related("source__grant", "source__workspace")
    choices = {row.agent_id: row for row in rows}
    if not choices:
        return {}
    agents = {row.pk: row for row in Agent.objects.in_workspace(workspace)}
    agents |= {agent.pk: agent for agent in drafted}
    rules = HARNESSES | get_custom_harnesses(workspace)
    found = (build_source_reader(agent, agents, choices, rules) for agent in agents.values())
    return {one.agent.pk: one for one in found if one}


@dataclass(frozen=True)
class AgentLineage:
    """An agent and those it may inherit from, the nearest first, with what each of them chose."""

    line: dict[int, Agent]
    choices: dict[int, AgentContext]
    has_own_rules: bool


def load_agent_lineage(agent: Agent) -> AgentLineage:
    """Only what stands in the agent's own line upwards is loaded; one query, and one for each grandparent.

    None where an agent was loaded together with its choice, has made none and stands below nobody.
    """
    if has_no_source(agent):
        return AgentLineage({agent.pk: agent}, {}, has_own_rules=False)
    line = {one.pk: one for one in load_ancestors(agent)}
    copies = RuleSet.objects.in_workspace(agent.workspace_id).filter(
        harness=OuterRef("harness"), archived_at=None
    )
    rows = AgentContext.objects.in_workspace(agent.workspace_id).filter(agent__in=list(line))
    rows = rows.annotate(has_own_rules=Exists(copies)).select_related("source__grant", "source__workspace")
    choices: dict[int, AgentContext] = {}
    has_own_rules = False
    for row in rows:
        choices[row.agent_id] = row
        has_own_rules |= row.has_own_rules
    return AgentLineage(line, choices, has_own_rules)


def has_no_source(agent: Agent) -> bool:
    """Whether that is plain without asking: it was loaded with its choice, made none and inherits none."""
    return agent.parent_id is None and agent._state.fields_cache.get("context", agent) is None


def load_ancestors(agent: Agent) -> Iterable[Agent]:
    """The agent, its parent, and so on, each asked for when it is needed."""
    seen: set[int] = set()
    at: Agent | None = agent
    while at is not None and at.pk not in seen:
        seen.add(at.pk)
        yield at
        at = at.parent


def get_source_reader(agent: Agent, known: AgentLineage | None = None) -> SourceReader | None:
    """Of one agent alone."""
    known = known or load_agent_lineage(agent)
    rules = HARNESSES | (get_custom_harnesses(agent.workspace_id) if known.has_own_rules else {})
    return build_source_reader(agent, known.line, known.choices, rules)


def build_source_reader(
    agent: Agent, agents: dict[int, Agent], choices: dict[int, AgentContext], rules: dict[str, Harness]
) -> SourceReader | None:
    line = list(iter_ancestors(agent, agents))
    chooser = next((one for one in line if one.pk in choices), None)
    if chooser is None:
        return None
    choice = choices[chooser.pk]
    if choice.source is None or choice.source.is_archived or choice.harness not in rules:
        return None
    between = line[: line.index(chooser) + 1]
    folder = next((one.working_directory for one in between if one.working_directory), "")
    return SourceReader(
        agent, choice.source, rules[choice.harness], get_relative_directory(folder, choice.source), chooser
    )


def iter_ancestors(agent: Agent, agents: dict[int, Agent]) -> Iterable[Agent]:
    """The agent, its parent, and so on; no circle can be stored, but none would hang this either."""
    seen: set[int] = set()
    at: Agent | None = agent
    while at is not None and at.pk not in seen:
        seen.add(at.pk)
        yield at
        at = agents.get(at.parent_id) if at.parent_id is not None else None


def get_relative_directory(folder: str, source: Source) -> str:
    """The working directory as a path below the source's root; one that lies elsewhere means the root."""
    if not folder.startswith("/"):
        return folder.strip("/")
    grant = source.grant.path if source.grant else ""
    root = "/".join(part for part in (grant.rstrip("/"), source.folder) if part)
    inside = f"{folder.rstrip('/')}/".startswith(f"{root}/") if root else False
    return folder[len(root) :].strip("/") if inside else ""

"""Resolve which source, working directory and rules each agent uses, itself or inherited from an ancestor."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _

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
    # Why the working directory could not be used; empty if it could.
    directory_problem: str = ""

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
    directory = locate_working_directory(folder, choice.source)
    return SourceReader(
        agent, choice.source, rules[choice.harness], directory.path, chooser, directory.problem
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


class WorkingDirectory(NamedTuple):
    """A working directory relative to the source's root ("" for the root), and why it could not be used."""

    path: str
    problem: str = ""


def locate_working_directory(directory: str, source: Source, *, root_location: str = "") -> WorkingDirectory:
    """Find the working directory of an agent below the root of its source.

    An absolute path must be below the folder that workers read, or below `root_location`, the place where
    bots see the root. Otherwise the root is used, and the problem says so.
    """
    names = [name for name in directory.split("/") if name not in {"", "."}]
    if ".." in names:
        message = _(
            "Working directory %(directory)s contains “..”. Write it without. Until then, files are read "
            "from the root of the source."
        )
        return WorkingDirectory("", message % {"directory": directory})
    if not directory.startswith("/"):
        return WorkingDirectory("/".join(names))
    roots = [root for root in (root_location.rstrip("/"), get_root_path(source)) if root]
    path = "/" + "/".join(names)
    for root in roots:
        if f"{path}/".startswith(f"{root}/"):
            return WorkingDirectory(path[len(root) :].strip("/"))
    return WorkingDirectory("", describe_outside_problem(directory, roots))


def get_root_path(source: Source) -> str:
    """Return the absolute path of the folder that workers read; empty for pushed files."""
    if source.grant is None:
        return ""
    return "/".join(part for part in (source.grant.path.rstrip("/"), source.folder) if part)


def describe_outside_problem(directory: str, roots: Sequence[str]) -> str:
    if not roots:
        message = _(
            "Working directory %(directory)s cannot be found: pushed files have no folder on disk. Set a "
            "path relative to their root. Until then, files are read from the root."
        )
        return message % {"directory": directory}
    message = _(
        "Working directory %(directory)s is not below the root of the source, %(root)s. Correct the working "
        "directory of the agent. Until then, files are read from the root."
    )
    return message % {"directory": directory, "root": roots[0]}

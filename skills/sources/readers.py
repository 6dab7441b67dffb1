"""Resolve which sources, working directory and rules each agent uses, its own or those of an ancestor."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from django.db.models import Exists, OuterRef, Prefetch, QuerySet

from personas.models import Agent, Workspace
from skills.discovery.agent_search import (
    AgentFile,
    SearchedSource,
    add_skill_folders,
    customize_harness,
    list_agent_files,
)
from skills.discovery.harnesses import HARNESSES, FileKind, Harness
from skills.models import AgentContext, AgentSource, RuleSet, Source, SourceScope
from skills.rule_sets.effective import get_effective_harnesses
from skills.sources.folders import (
    MappedDirectory,
    find_outside_folders_problem,
    find_project_use,
    get_home_folder,
    get_root_path,
    list_skill_folders,
    map_directory,
)
from skills.sources.locations import get_comparable_path, join_location

# File kinds that are disabled if `AgentContext.has_context_files` is False.
CONTEXT_KINDS: tuple[FileKind, ...] = ("context", "workspace")


@dataclass(frozen=True)
class SourceReader:
    """One source of an agent, with the agent's rules and its working directory in this source."""

    agent: Agent
    use: AgentSource
    harness: Harness
    working_directory: str
    # The agent whose AgentContext row applies: this agent, or the ancestor that it inherits from.
    chosen_by: Agent
    # Why the working directory could not be used; empty if it could.
    directory_problem: str = ""

    @property
    def source(self) -> Source:
        return self.use.source

    @property
    def is_inherited(self) -> bool:
        return self.chosen_by.pk != self.agent.pk


@dataclass(frozen=True)
class ContextReader:
    """The sources of one agent, lowest priority first, with its rules, settings and working directory."""

    agent: Agent
    row: AgentContext
    uses: tuple[AgentSource, ...]
    # The rules of the harness, with the settings of the AgentContext row applied.
    harness: Harness
    directory: MappedDirectory
    chosen_by: Agent

    @property
    def is_inherited(self) -> bool:
        return self.chosen_by.pk != self.agent.pk

    @property
    def sources(self) -> list[SourceReader]:
        return [
            SourceReader(self.agent, use, self.harness, folder or "", self.chosen_by, self.directory.problem)
            for use, folder in zip(self.uses, self.directory.relative, strict=True)
        ]

    @property
    def source(self) -> Source:
        """The source that contains relative working directories: the project."""
        return find_project_use(self.uses).source

    @property
    def home(self) -> str:
        """The home directory of the bots: the location of the last source of this scope; empty if unknown."""
        homes = [use.bot_location for use in self.uses if use.scope == SourceScope.HOME]
        return next((location for location in reversed(homes) if location), "")

    @property
    def directory_problem(self) -> str:
        return self.directory.problem

    @cached_property
    def skill_folders_problem(self) -> str:
        """Which additional skill folders lie in none of the sources; empty if all do, or skills are off."""
        folders = self.row.extra_skill_folders if self.row.has_skills else []
        return find_outside_folders_problem(self.uses, folders, self.harness)

    @property
    def source_ids(self) -> list[int]:
        return [use.source_id for use in self.uses]

    @property
    def working_directory(self) -> str:
        """The working directory as a path in `source`."""
        return self.directory.relative[self.uses.index(find_project_use(self.uses))] or ""

    @cached_property
    def searched_sources(self) -> tuple[SearchedSource, ...]:
        row, folders = self.row, self.directory.folders
        return tuple(
            [
                SearchedSource(
                    use.source_id,
                    folders[index],
                    use.scope != SourceScope.PROJECT,
                    use.scope != SourceScope.HOME,
                    get_home_folder(use, self.harness),
                    list_skill_folders(use, row.extra_skill_folders, self.harness),
                    get_comparable_path(get_root_path(use, self.uses)),
                )
                for index, use in enumerate(self.uses)
            ]
        )

    @cached_property
    def match_key(self) -> tuple[object, ...]:
        """A key that is equal for agents whose rules match the same files."""
        names = tuple([(one.key, tuple(one.folders.each), *one[2:]) for one in self.searched_sources])
        project = tuple([one.folders.project for one in self.searched_sources])
        row = self.row
        return (self.harness.name, row.has_context_files, row.has_skills, *row.file_names, names, project)

    def match_files(self, stored: Mapping[int, Collection[str]]) -> list[AgentFile]:
        """List those stored files that this agent's rules match, in rule order.

        `stored` maps ids of sources to the paths of their files.
        """
        return list_agent_files(self.harness, self.searched_sources, stored)

    def get_bot_path(self, source: Source, path: str) -> str:
        """Return the absolute path of a file for this agent's bots, or its relative path if it is unknown.

        A skill can be assigned from a source that the agent does not read. Then the source's own location
        applies.
        """
        use = next((use for use in self.uses if use.source_id == source.pk), None)
        return build_bot_path(use.bot_location if use else source.location, path)


def build_bot_path(location: str, path: str) -> str:
    return join_location(location, path) if location else path


def list_context_rows(workspace: Workspace | int) -> "QuerySet[AgentContext]":
    """Return the AgentContext rows with their sources in order."""
    return AgentContext.objects.in_workspace(workspace).prefetch_related(prefetch_uses(workspace))


def prefetch_uses(workspace: Workspace | int) -> Prefetch[str]:
    uses = AgentSource.objects.in_workspace(workspace).order_by("position", "pk")
    return Prefetch("uses", queryset=uses.select_related("source__allowed_folder", "source__workspace"))


def get_readers_by_agent(
    workspace: Workspace | int, drafted: Iterable[Agent] = ()
) -> dict[int, ContextReader]:
    """Return the readers of all agents that have a source, by agent id, with four queries in total.

    `drafted` are agents with unsaved edits. They are used instead of the saved agents with the same ids,
    because an edited working directory changes which files apply.
    """
    choices = {row.agent_id: row for row in list_context_rows(workspace)}
    if not choices:
        return {}
    agents = {row.pk: row for row in Agent.objects.in_workspace(workspace)}
    agents |= {agent.pk: agent for agent in drafted}
    rules = get_effective_harnesses(workspace)
    readers = (build_context_reader(agent, agents, choices, rules) for agent in agents.values())
    return {reader.agent.pk: reader for reader in readers if reader}


@dataclass(frozen=True)
class AgentLineage:
    """An agent and its ancestors by id, nearest first, with the AgentContext rows of those that have one."""

    line: dict[int, Agent]
    choices: dict[int, AgentContext]
    # Whether the workspace has custom rules for a harness in `choices`.
    has_own_rules: bool


def load_agent_lineage(agent: Agent) -> AgentLineage:
    """Load the lineage of one agent with two queries, plus one query for each ancestor above the parent.

    No query is made if the loaded agent already shows that it has no source, see `has_no_source`.
    """
    if has_no_source(agent):
        return AgentLineage({agent.pk: agent}, {}, has_own_rules=False)
    agents = {ancestor.pk: ancestor for ancestor in load_ancestors(agent)}
    custom_rules = RuleSet.objects.in_workspace(agent.workspace_id).filter(
        harness=OuterRef("harness"), archived_at=None
    )
    rows = list_context_rows(agent.workspace_id).filter(agent__in=list(agents))
    rows = rows.annotate(has_own_rules=Exists(custom_rules))
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


def get_context_reader(agent: Agent, lineage: AgentLineage | None = None) -> ContextReader | None:
    """Return the reader of one agent, or None if the agent reads no source."""
    lineage = lineage or load_agent_lineage(agent)
    rules = get_effective_harnesses(agent.workspace_id) if lineage.has_own_rules else HARNESSES
    return build_context_reader(agent, lineage.line, lineage.choices, rules)


def find_context_row(
    agent: Agent, agents: dict[int, Agent], choices: Mapping[int, AgentContext]
) -> AgentContext | None:
    """Return the AgentContext row that applies to an agent: its own, or that of its nearest ancestor."""
    return next(
        (choices[ancestor.pk] for ancestor in iter_ancestors(agent, agents) if ancestor.pk in choices), None
    )


def build_context_reader(
    agent: Agent, agents: dict[int, Agent], choices: Mapping[int, AgentContext], rules: Mapping[str, Harness]
) -> ContextReader | None:
    lineage = list(iter_ancestors(agent, agents))
    chooser = next((ancestor for ancestor in lineage if ancestor.pk in choices), None)
    if chooser is None:
        return None
    row = choices[chooser.pk]
    uses = list_active_uses(row)
    if not uses or row.harness not in rules:
        return None
    up_to_chooser = lineage[: lineage.index(chooser) + 1]
    folder = next(
        (ancestor.working_directory for ancestor in up_to_chooser if ancestor.working_directory), ""
    )
    harness = build_agent_harness(row, rules[row.harness])
    return ContextReader(agent, row, uses, harness, map_directory(folder, uses, harness), chooser)


def list_active_uses(row: AgentContext) -> tuple[AgentSource, ...]:
    return tuple([use for use in row.uses.all() if not use.source.is_archived])


def build_agent_harness(row: AgentContext, harness: Harness) -> Harness:
    """Apply the settings of an agent to the rules of its harness."""
    off: list[FileKind] = [] if row.has_context_files else list(CONTEXT_KINDS)
    if not row.has_skills:
        off.append("skill")
    return customize_harness(harness, row.file_names, off) if off or row.file_names else harness


def list_source_harnesses(source: Source) -> list[Harness]:
    """List the rules for a refresh of a source.

    These are the source's rule sets, and variants of them for agents with other file names or skill folders.
    """
    rules = get_effective_harnesses(source.workspace_id)
    harnesses = {name: rules[name] for name in source.harnesses}
    uses = AgentSource.objects.in_workspace(source.workspace_id).filter(source=source)
    variants = [
        build_refresh_harness(use, harnesses[use.context.harness])
        for use in uses.select_related("context", "source__allowed_folder").order_by("pk")
        if use.context.harness in harnesses
    ]
    return list(dict.fromkeys([*harnesses.values(), *variants]))


def build_refresh_harness(use: AgentSource, harness: Harness) -> Harness:
    row = use.context
    folders = list_skill_folders(use, row.extra_skill_folders, harness)
    named = customize_harness(harness, row.file_names) if row.file_names else harness
    home = get_home_folder(use, harness)
    return add_skill_folders(named, home, folders) if folders or home != harness.global_folder else named


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

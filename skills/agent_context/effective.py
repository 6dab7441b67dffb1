"""Load the effective context of agents: their context files, and their skills without duplicate names.

A harness is the program that runs an agent; its rules decide which files of its sources the agent reads. The
revision of a file that prompts use is called the active revision.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from core.db.fast import CompiledQueries
from personas.models import Agent, Workspace
from skills.agent_context.preload import WorkspaceSkills
from skills.files.evaluate import build_skill_reading
from skills.files.statuses import WITHHELD_STATUSES
from skills.models import AgentContext, AssignedTo, ContextFile, FileAgent, Skill, SkillLink
from skills.skill_format.tolerance import evaluate_for_harnesses, get_judging_harnesses
from skills.sources.readers import (
    AgentLineage,
    ContextReader,
    build_bot_path,
    build_context_reader,
    find_context_row,
    get_context_reader,
    has_no_source,
    iter_ancestors,
    load_agent_lineage,
)

MatchedFiles = list[tuple[str, ContextFile]]

# Used in place of a path for a skill that is stored as a record and has no file. The API returns this text,
# so it is never translated.
SKILL_RECORD_PATH = "skill record"


@dataclass(frozen=True)
class EffectiveFile:
    """A file in an agent's context, with the file kind of the harness rule that matched it.

    `bot_path` is the path that prompts print: absolute if the location of the source is known.
    """

    kind: str
    file: ContextFile
    bot_path: str = ""

    @property
    def text(self) -> str:
        revision = self.file.active
        return revision.content.text if revision else ""


@dataclass(frozen=True)
class AgentSkill:
    """A skill of an agent, stored as a record (`skill`) or as a file (`file`).

    `hidden_by` is the location of another skill of the same name that the agent uses instead of this one.
    """

    name: str
    description: str
    disable_model_invocation: bool
    skill: Skill | None = None
    file: ContextFile | None = None
    hidden_by: str = ""
    # The reasons why the agent's harness ignores this skill; empty if the harness accepts it.
    dropped: tuple[str, ...] = ()
    # The file path that prompts print; empty for a skill record.
    bot_path: str = ""

    @property
    def is_used(self) -> bool:
        return not self.hidden_by and not self.dropped

    @property
    def location(self) -> str:
        return self.file.path if self.file else SKILL_RECORD_PATH


@dataclass(frozen=True)
class EffectiveContext:
    """The effective files and skills of one agent."""

    reader: ContextReader | None
    files: tuple[EffectiveFile, ...] = ()
    skills: tuple[AgentSkill, ...] = ()
    # Files that the agent's rules match but whose status is invalid, quarantined or missing. A file is listed
    # here even if prompts still use an older revision of it.
    withheld: tuple[ContextFile, ...] = ()
    # The agent's settings for files and skills, own or inherited; None if there are none.
    settings: AgentContext | None = None
    # The working directory that prompts print, own or inherited; absolute if the absolute path is known.
    working_directory: str = ""

    @property
    def bot_directory(self) -> str:
        """The absolute working directory of the agent's bots; empty if it is unknown."""
        return self.reader.directory.absolute if self.reader else ""

    def list_files(self, *kinds: str) -> list[EffectiveFile]:
        # Fast path: most callers ask for a single kind, several times per prompt.
        if len(kinds) == 1:
            return self.files_by_kind.get(kinds[0], [])
        return [file for file in self.files if file.kind in kinds]

    @cached_property
    def files_by_kind(self) -> dict[str, list[EffectiveFile]]:
        files_by_kind: dict[str, list[EffectiveFile]] = {}
        for file in self.files:
            files_by_kind.setdefault(file.kind, []).append(file)
        return files_by_kind


@dataclass(frozen=True)
class SkillDraft:
    """An unsaved edit of a skill.

    `agent_ids` are the agents that the skill is assigned to; None means the stored assignments.
    """

    skill: Skill
    agent_ids: frozenset[int] | None = None


def get_effective_context(agent: Agent) -> EffectiveContext:
    return get_effective_contexts(agent.workspace_id, [agent])[agent.pk]


def get_effective_contexts(
    workspace: Workspace | int,
    agents: Sequence[Agent],
    draft: SkillDraft | None = None,
    workspace_skills: WorkspaceSkills | None = None,
) -> dict[int, EffectiveContext]:
    """Return the effective context of each agent, by agent id.

    The number of queries does not depend on the number of agents.
    """
    loader = ContextLoader(workspace, agents, draft, workspace_skills)
    return {agent.pk: loader.get_context(agent) for agent in agents}


class ContextLoader:
    """Builds the effective contexts of many agents, and loads the workspace's files and skills only once."""

    def __init__(
        self,
        workspace: Workspace | int,
        agents: Sequence[Agent],
        draft: SkillDraft | None = None,
        workspace_skills: WorkspaceSkills | None = None,
    ) -> None:
        self.workspace, self.agents, self.draft = workspace, agents, draft
        self.workspace_skills = workspace_skills or WorkspaceSkills.load(workspace, agents)
        self.readers = {agent.pk: reader for agent in agents if (reader := self.build_reader(agent))}
        self.matches: dict[tuple[object, ...], MatchedFiles] = {}

    def build_reader(self, agent: Agent) -> ContextReader | None:
        if has_no_source(agent):
            return None
        return build_context_reader(
            agent, self.agents_by_id, self.workspace_skills.choices, self.workspace_skills.harnesses
        )

    def get_settings(self, agent: Agent) -> AgentContext | None:
        if has_no_source(agent):
            return None
        return find_context_row(agent, self.agents_by_id, self.workspace_skills.choices)

    @cached_property
    def agents_by_id(self) -> dict[int, Agent]:
        """The requested agents and all parent agents, by id.

        A requested agent may have unsaved edits, so it replaces the stored row of the same agent.
        """
        return self.workspace_skills.parents | {agent.pk: agent for agent in self.agents}

    def get_context(self, agent: Agent) -> EffectiveContext:
        reader, settings = self.readers.get(agent.pk), self.get_settings(agent)
        matches = self.list_matched_files(reader) if reader else []
        skills: Iterable[AgentSkill] = ()
        if settings is None or settings.has_skills:
            skills = resolve_duplicate_skills(
                [*self.list_record_skills(agent), *self.list_file_skills(agent, matches, reader)]
            )
        return EffectiveContext(
            reader,
            tuple(
                [
                    EffectiveFile(kind, file, get_bot_path(file, reader))
                    for kind, file in matches
                    if kind != "skill" and file.active_id
                ]
            ),
            tuple(skills),
            tuple([file for _, file in matches if file.status in WITHHELD_STATUSES]),
            settings,
            self.get_working_directory(agent),
        )

    def get_working_directory(self, agent: Agent) -> str:
        """Return the directory that prompts print; a sub-agent without one works where its parent works."""
        for ancestor in iter_ancestors(agent, self.agents_by_id):
            reader = self.readers.get(ancestor.pk) or self.build_reader(ancestor)
            if directory := (reader.directory.absolute if reader else "") or ancestor.working_directory:
                return directory
        return ""

    def list_matched_files(self, reader: ContextReader) -> MatchedFiles:
        """Return the files that the reader's rules match, each with its kind.

        Cached, because many agents have the same sources, rules and working directory.
        """
        key = reader.match_key
        if key not in self.matches:
            files = self.files
            self.matches[key] = [
                (kind, files[source][path]) for kind, source, path in reader.match_files(files)
            ]
        return self.matches[key]

    @cached_property
    def files(self) -> dict[int, dict[str, ContextFile]]:
        """All files of the agents' sources, by source id and path.

        A file that is missing from its source is included only if prompts still use one of its revisions.
        """
        sources = {source for reader in self.readers.values() for source in reader.source_ids}
        by_source: dict[int, dict[str, ContextFile]] = defaultdict(dict)
        if sources:
            rows = ContextFile.objects.in_workspace(self.workspace).filter(
                source__in=sources, is_ignored=False
            )
            for row in rows.select_related("active__content", "latest", "source"):
                if row.exists or row.active_id:
                    by_source[row.source_id][row.path] = row
        return by_source

    @cached_property
    def skills(self) -> list[Skill]:
        skills = self.workspace_skills.skills
        if self.draft is None:
            return skills
        skill = self.draft.skill
        if any(row.pk == skill.pk and row.name == skill.name for row in skills):
            return [skill if row.pk == skill.pk else row for row in skills]
        others = [row for row in skills if row.pk != skill.pk]
        return sorted([*others, skill], key=lambda row: row.name)

    @cached_property
    def skill_links(self) -> set[tuple[int | None, int]]:
        links: set[tuple[int | None, int]] = set(self.workspace_skills.skill_links)
        draft = self.draft
        if draft is None or draft.agent_ids is None:
            return links
        others = {link for link in links if link[0] != draft.skill.pk}
        return others | {(draft.skill.pk, agent_id) for agent_id in draft.agent_ids}

    @cached_property
    def assigned_files(self) -> list[ContextFile]:
        return self.workspace_skills.assigned_files

    @cached_property
    def file_links(self) -> set[tuple[int, int]]:
        return set(self.workspace_skills.file_links)

    def list_record_skills(self, agent: Agent) -> Iterable[AgentSkill]:
        for row in self.skills:
            if row.for_all_agents or (row.pk, agent.pk) in self.skill_links:
                yield AgentSkill(row.name, row.description, row.disable_model_invocation, skill=row)

    def list_file_skills(
        self, agent: Agent, matches: MatchedFiles, reader: ContextReader | None
    ) -> Iterable[AgentSkill]:
        """Yield skill files: first those that the agent's rules match, in rule order, then assigned ones."""
        by_rule = [
            file for kind, file in matches if kind == "skill" and file.assigned_to == AssignedTo.WHERE_FOUND
        ]
        by_assignment = [
            file
            for file in self.assigned_files
            if file.assigned_to == AssignedTo.ALL or (file.pk, agent.pk) in self.file_links
        ]
        harnesses = list_judging_harnesses(agent, reader)
        for file in [*by_rule, *by_assignment]:
            if file.active is not None:
                yield replace(evaluate_skill_file(file, harnesses), bot_path=get_bot_path(file, reader))


def get_bot_path(file: ContextFile, reader: ContextReader | None) -> str:
    """Return the path of a file that prompts print: absolute if the location of its source is known."""
    if reader is None:
        return build_bot_path(file.source.location, file.path)
    return reader.get_bot_path(file.source, file.path)


def list_judging_harnesses(agent: Agent, reader: ContextReader | None) -> tuple[str, ...]:
    return get_judging_harnesses(reader.harness.name if reader else "", agent.layout)


def evaluate_skill_file(file: ContextFile, harnesses: tuple[str, ...]) -> AgentSkill:
    """Build the AgentSkill of a skill file. If a harness ignores it, `dropped` lists the reasons."""
    revision = file.active
    head = revision.head if revision else {}
    verdict = evaluate_for_harnesses(
        build_skill_reading(head, revision.problems if revision else []), harnesses
    )
    return AgentSkill(
        head.get("name", file.name),
        head.get("description", ""),
        bool(head.get("disable_model_invocation")),
        file=file,
        dropped=() if verdict.kept else tuple([problem.message for problem in verdict.reasons]),
    )


def resolve_duplicate_skills(skills: Iterable[AgentSkill]) -> Iterable[AgentSkill]:
    """Set `hidden_by` on each skill that has the same name as an earlier one.

    Callers pass records before files, so a record hides a file. Dropped skills hide nothing.
    """
    winners: dict[str, AgentSkill] = {}
    for skill in skills:
        if not skill.dropped and skill.name in winners:
            yield replace(skill, hidden_by=winners[skill.name].location)
            continue
        if not skill.dropped:
            winners[skill.name] = skill
        yield skill


class AgentContextLoader(ContextLoader):
    """Loads the context of a single agent. Files and skills take one query each.

    With `has_contents`, all files of the agent's sources are loaded with their contents, and skills with
    their instructions. Without it, only skill files are loaded, without contents.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        has_contents: bool = False,
        rows_without_source: list[list[Any]] | None = None,
    ) -> None:
        """`rows_without_source` are the results of CANDIDATE_QUERIES without sources, if they are loaded."""
        self.workspace, self.agents, self.draft = agent.workspace_id, [agent], None
        self.rows_without_source = rows_without_source
        self.agent, self.has_contents, self.matches = agent, has_contents, {}
        self.lineage: AgentLineage = load_agent_lineage(agent)
        self.reader: ContextReader | None = get_context_reader(agent, self.lineage)
        self.readers = {agent.pk: self.reader} if self.reader else {}

    @property
    def agents_by_id(self) -> dict[int, Agent]:
        return self.lineage.line

    def build_reader(self, agent: Agent) -> ContextReader | None:
        return get_context_reader(agent, self.lineage)

    def get_settings(self, agent: Agent) -> AgentContext | None:
        return find_context_row(agent, self.lineage.line, self.lineage.choices)

    @cached_property
    def rows(self) -> list[list[Any]]:
        sources = list(self.reader.source_ids) if self.reader else []
        if not self.has_contents:
            queries = build_candidate_queries(self.workspace, self.agent.pk, sources, has_contents=False)
            return [list(rows) for rows in queries]
        if not sources and self.rows_without_source is not None:
            return self.rows_without_source
        return CANDIDATE_QUERIES(self.workspace, self.agent.pk, sources)

    @property
    def candidate_files(self) -> list[ContextFile]:
        """The files of the agent's sources, and the skill files of any source assigned to the agent."""
        return self.rows[0]

    @cached_property
    def files(self) -> dict[int, dict[str, ContextFile]]:
        if self.reader is None:
            return {}
        by_source: dict[int, dict[str, ContextFile]] = {pk: {} for pk in self.reader.source_ids}
        for row in self.candidate_files:
            if row.source_id in by_source and (row.exists or row.active_id):
                by_source[row.source_id][row.path] = row
        return by_source

    @cached_property
    def offered_files(self) -> list[ContextFile]:
        """The skill files assigned to the agent, including files that are not approved yet."""
        rows = [
            row for row in self.candidate_files if row.file_kind == "skill" and row.source.archived_at is None
        ]
        return [row for row in rows if row.assigned_to == AssignedTo.ALL or self.is_chosen(row)]

    def is_chosen(self, row: ContextFile) -> bool:
        return row.assigned_to == AssignedTo.SELECTED and bool(getattr(row, "is_mine", False))

    @cached_property
    def assigned_files(self) -> list[ContextFile]:
        return [row for row in self.offered_files if row.active_id]

    @cached_property
    def file_links(self) -> set[tuple[int, int]]:
        return {(row.pk, self.agent.pk) for row in self.offered_files}

    @cached_property
    def skills(self) -> list[Skill]:
        return self.rows[1]

    @cached_property
    def skill_links(self) -> set[tuple[int | None, int]]:
        return {(row.pk, self.agent.pk) for row in self.skills}


def build_candidate_queries(
    workspace: Workspace | int, agent_id: int, source_ids: Sequence[int], *, has_contents: bool
) -> list["QuerySet[Any, Any]"]:
    """Return the queries for the files and the skills of one agent. See AgentContextLoader."""
    links = FileAgent.objects.in_workspace(workspace).filter(file=OuterRef("pk"), agent=agent_id)
    files = ContextFile.objects.in_workspace(workspace).filter(is_ignored=False)
    in_own_source = Q(source__in=source_ids)
    in_own_source &= Q() if has_contents else Q(file_kind="skill")
    assigned = Q(assigned_to=AssignedTo.ALL) | Q(assigned_to=AssignedTo.SELECTED, is_mine=True)
    assigned_skills = Q(file_kind="skill", source__archived_at=None) & assigned
    visible = files.annotate(is_mine=Exists(links)).filter(in_own_source | assigned_skills)
    revision = "active__content" if has_contents else "active"
    skill_links = SkillLink.objects.in_workspace(workspace).filter(skill=OuterRef("pk"), agent=agent_id)
    skills = Skill.objects.in_workspace(workspace).filter(archived_at=None)
    skills = skills.filter(Q(for_all_agents=True) | Exists(skill_links))
    if not has_contents:
        skills = skills.defer("body")
    return [
        visible.select_related(revision, "latest", "source").order_by("name", "pk"),
        skills.order_by("name", "pk"),
    ]


# The queries for builds, which need the contents.
CANDIDATE_QUERIES = CompiledQueries(partial(build_candidate_queries, has_contents=True))

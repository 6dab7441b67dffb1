"""What agents are given: the files in force for them, and their skills with duplicates resolved."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from personas.models import Agent, Workspace
from skills.agent_context.preload import WorkspaceSkills
from skills.files.evaluate import build_skill_reading
from skills.models import ContextFile, FileAgent, Reach, Skill, SkillLink
from skills.skill_format.tolerance import evaluate_for_harness
from skills.sources.readers import (
    AgentLineage,
    SourceReader,
    build_source_reader,
    get_source_reader,
    has_no_source,
    load_agent_lineage,
)

MatchedFiles = list[tuple[str, ContextFile]]
WITHHELD_STATES = {"invalid", "quarantined", "missing"}

# What stands for the path of a skill that no file holds; programs get it as it is.
SKILL_RECORD_PATH = "written here"


@dataclass(frozen=True)
class EffectiveFile:
    """A file an agent is given, as what, and from where."""

    kind: str
    file: ContextFile

    @property
    def text(self) -> str:
        revision = self.file.in_force
        return revision.content.text if revision else ""


@dataclass(frozen=True)
class AgentSkill:
    """A skill of an agent, written here or found; a hidden one lost to another of its name."""

    name: str
    description: str
    disable_model_invocation: bool
    skill: Skill | None = None
    file: ContextFile | None = None
    hidden_by: str = ""
    # Why the agent's own rules leave it out.
    dropped: tuple[str, ...] = ()

    @property
    def is_used(self) -> bool:
        return not self.hidden_by and not self.dropped

    @property
    def place(self) -> str:
        return self.file.path if self.file else SKILL_RECORD_PATH


@dataclass(frozen=True)
class EffectiveContext:
    """All that files and skills give one agent."""

    outlook: SourceReader | None
    files: tuple[EffectiveFile, ...] = ()
    skills: tuple[AgentSkill, ...] = ()
    # Files its rules name that are not as they should be, whether or not an older revision stands in.
    withheld: tuple[ContextFile, ...] = ()

    def of_kind(self, *kinds: str) -> list[EffectiveFile]:
        return [one for one in self.files if one.kind in kinds]


@dataclass(frozen=True)
class SkillDraft:
    """A skill as it would be after an edit, and whom it would be handed to; None leaves that as it is."""

    skill: Skill
    agent_ids: frozenset[int] | None = None


def get_effective_context(agent: Agent) -> EffectiveContext:
    return get_effective_contexts(agent.workspace_id, [agent])[agent.pk]


def get_effective_contexts(
    workspace: Workspace | int,
    agents: Sequence[Agent],
    draft: SkillDraft | None = None,
    stock: WorkspaceSkills | None = None,
) -> dict[int, EffectiveContext]:
    """By agent; one query, and one for the files of those that read some, however many agents."""
    holdings = ContextLoader(workspace, agents, draft, stock)
    return {agent.pk: holdings.given(agent) for agent in agents}


class ContextLoader:
    """Files and skills of a workspace, loaded once for many agents."""

    def __init__(
        self,
        workspace: Workspace | int,
        agents: Sequence[Agent],
        draft: SkillDraft | None = None,
        stock: WorkspaceSkills | None = None,
    ) -> None:
        self.workspace, self.agents, self.draft = workspace, agents, draft
        self.stock = stock or WorkspaceSkills.around(workspace, agents)
        self.outlooks = {agent.pk: seen for agent in agents if (seen := self.outlook_of(agent))}
        self.found: dict[tuple[int, str, str], MatchedFiles] = {}

    def outlook_of(self, agent: Agent) -> SourceReader | None:
        if has_no_source(agent):
            return None
        return build_source_reader(agent, self.line, self.stock.choices, self.stock.rules)

    @cached_property
    def line(self) -> dict[int, Agent]:
        """The agents themselves, drafted ones as they would be, and all that others stand below."""
        return self.stock.parents | {agent.pk: agent for agent in self.agents}

    def given(self, agent: Agent) -> EffectiveContext:
        outlook = self.outlooks.get(agent.pk)
        found = self.found_for(outlook) if outlook else []
        skills = resolve_duplicate_skills(
            [*self.written_for(agent), *self.discovered_for(agent, found, outlook)]
        )
        return EffectiveContext(
            outlook,
            tuple(
                [EffectiveFile(kind, file) for kind, file in found if kind != "skill" and file.in_force_id]
            ),
            tuple(skills),
            tuple([file for _, file in found if file.state in WITHHELD_STATES]),
        )

    def found_for(self, outlook: SourceReader) -> MatchedFiles:
        """Agents with the same outlook share the answer."""
        key = (outlook.source.pk, outlook.harness.name, outlook.working_directory)
        if key not in self.found:
            files = self.files.get(outlook.source.pk, {})
            self.found[key] = [(kind, files[path]) for kind, path in outlook.paths(files)]
        return self.found[key]

    @cached_property
    def files(self) -> dict[int, dict[str, ContextFile]]:
        """By source and path; a missing file keeps its place only while it is in force."""
        sources = {outlook.source.pk for outlook in self.outlooks.values()}
        by_source: dict[int, dict[str, ContextFile]] = defaultdict(dict)
        if sources:
            rows = ContextFile.objects.in_workspace(self.workspace).filter(
                source__in=sources, is_ignored=False
            )
            for row in rows.select_related("in_force__content", "newest", "source"):
                if row.is_there or row.in_force_id:
                    by_source[row.source_id][row.path] = row
        return by_source

    @cached_property
    def written(self) -> list[Skill]:
        found = self.stock.written
        if self.draft is None:
            return found
        skill = self.draft.skill
        if any(row.pk == skill.pk and row.name == skill.name for row in found):
            return [skill if row.pk == skill.pk else row for row in found]
        others = [row for row in found if row.pk != skill.pk]
        return sorted([*others, skill], key=lambda row: row.name)

    @cached_property
    def written_links(self) -> set[tuple[int | None, int]]:
        links: set[tuple[int | None, int]] = set(self.stock.written_links)
        draft = self.draft
        if draft is None or draft.agent_ids is None:
            return links
        others = {link for link in links if link[0] != draft.skill.pk}
        return others | {(draft.skill.pk, agent_id) for agent_id in draft.agent_ids}

    @cached_property
    def handed(self) -> list[ContextFile]:
        return self.stock.handed

    @cached_property
    def handed_links(self) -> set[tuple[int, int]]:
        return set(self.stock.handed_links)

    def written_for(self, agent: Agent) -> Iterable[AgentSkill]:
        for row in self.written:
            if row.for_all_agents or (row.pk, agent.pk) in self.written_links:
                yield AgentSkill(row.name, row.description, row.disable_model_invocation, skill=row)

    def discovered_for(
        self, agent: Agent, found: MatchedFiles, outlook: SourceReader | None
    ) -> Iterable[AgentSkill]:
        """Those the agent's rules find, in their order, then those handed to it."""
        by_rule = [file for kind, file in found if kind == "skill" and file.reach == Reach.FOUND]
        by_hand = [
            file
            for file in self.handed
            if file.reach == Reach.ALL or (file.pk, agent.pk) in self.handed_links
        ]
        harness = outlook.harness.name if outlook else "plain"
        for file in [*by_rule, *by_hand]:
            if file.in_force is not None:
                yield evaluate_skill_file(file, harness)


def evaluate_skill_file(file: ContextFile, harness: str) -> AgentSkill:
    """A found skill as the agent's harness would take it."""
    revision = file.in_force
    head = revision.head if revision else {}
    verdict = evaluate_for_harness(build_skill_reading(head, revision.problems if revision else []), harness)
    return AgentSkill(
        head.get("name", file.name),
        head.get("description", ""),
        bool(head.get("disable_model_invocation")),
        file=file,
        dropped=() if verdict.kept else tuple([problem.message for problem in verdict.reasons]),
    )


def resolve_duplicate_skills(skills: Iterable[AgentSkill]) -> Iterable[AgentSkill]:
    """The first of a name wins: what is written here, then the harness's own order."""
    winners: dict[str, AgentSkill] = {}
    for one in skills:
        if not one.dropped and one.name in winners:
            yield replace(one, hidden_by=winners[one.name].place)
            continue
        if not one.dropped:
            winners[one.name] = one
        yield one


class AgentContextLoader(ContextLoader):
    """The same shelf for a single agent in two queries; only a whole one has the words of files."""

    def __init__(self, agent: Agent, *, is_whole: bool = False) -> None:
        self.workspace, self.agents, self.draft = agent.workspace_id, [agent], None
        self.agent, self.is_whole, self.found = agent, is_whole, {}
        self.above: AgentLineage = load_agent_lineage(agent)
        self.outlook: SourceReader | None = get_source_reader(agent, self.above)
        self.outlooks = {agent.pk: self.outlook} if self.outlook else {}

    @cached_property
    def rows(self) -> list[list[Any]]:
        return [list(self.files_near()), list(self.skills_written())]

    @property
    def near(self) -> list[ContextFile]:
        """The files of its source, and the skills that were handed to it."""
        return self.rows[0]

    def files_near(self) -> QuerySet[ContextFile]:
        links = FileAgent.objects.in_workspace(self.workspace).filter(file=OuterRef("pk"), agent=self.agent)
        rows = ContextFile.objects.in_workspace(self.workspace).filter(is_ignored=False)
        own = Q(source=self.outlook.source) if self.outlook else Q(pk=None)
        own &= Q() if self.is_whole else Q(file_kind="skill")
        handed = Q(reach=Reach.ALL) | Q(reach=Reach.CHOSEN, is_mine=True)
        skills = Q(file_kind="skill", source__archived_at=None)
        seen = rows.annotate(is_mine=Exists(links)).filter(own | (skills & handed))
        words = "in_force__content" if self.is_whole else "in_force"
        return seen.select_related(words, "newest", "source").order_by("name", "pk")

    @cached_property
    def files(self) -> dict[int, dict[str, ContextFile]]:
        if self.outlook is None:
            return {}
        source = self.outlook.source.pk
        here = [row for row in self.near if row.source_id == source and (row.is_there or row.in_force_id)]
        return {source: {row.path: row for row in here}}

    @cached_property
    def offered(self) -> list[ContextFile]:
        """Skills that someone gave it, whatever its rules find, in force or not."""
        rows = [row for row in self.near if row.file_kind == "skill" and row.source.archived_at is None]
        return [row for row in rows if row.reach == Reach.ALL or self.is_chosen(row)]

    def is_chosen(self, row: ContextFile) -> bool:
        return row.reach == Reach.CHOSEN and bool(getattr(row, "is_mine", False))

    @cached_property
    def handed(self) -> list[ContextFile]:
        return [row for row in self.offered if row.in_force_id]

    @cached_property
    def handed_links(self) -> set[tuple[int, int]]:
        return {(row.pk, self.agent.pk) for row in self.offered}

    @cached_property
    def written(self) -> list[Skill]:
        return self.rows[1]

    def skills_written(self) -> QuerySet[Skill]:
        links = SkillLink.objects.in_workspace(self.workspace).filter(skill=OuterRef("pk"), agent=self.agent)
        rows = Skill.objects.in_workspace(self.workspace).filter(archived_at=None)
        mine = rows.filter(Q(for_all_agents=True) | Exists(links)).defer("body")
        return mine.order_by("name", "pk")

    @cached_property
    def written_links(self) -> set[tuple[int | None, int]]:
        return {(row.pk, self.agent.pk) for row in self.written}

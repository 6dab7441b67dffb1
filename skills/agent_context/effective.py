"""What agents are given: the files in force for them, and their skills with duplicates resolved."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from personas.models import Agent, Workspace
from skills.agent_context.preload import Stock
from skills.files.evaluate import reading_of
from skills.models import ContextFile, Reach, Skill
from skills.skill_format.tolerance import judge
from skills.sources.readers import Outlook, outlook, reads_nowhere

Found = list[tuple[str, ContextFile]]
WITHHELD = {"invalid", "quarantined", "missing"}

# What stands for the path of a skill that no file holds; programs get it as it is.
WRITTEN_HERE = "written here"


@dataclass(frozen=True)
class FileInUse:
    """A file an agent is given, as what, and from where."""

    kind: str
    file: ContextFile

    @property
    def text(self) -> str:
        revision = self.file.in_force
        return revision.content.text if revision else ""


@dataclass(frozen=True)
class SkillInUse:
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
        return self.file.path if self.file else WRITTEN_HERE


@dataclass(frozen=True)
class Given:
    """All that files and skills give one agent."""

    outlook: Outlook | None
    files: tuple[FileInUse, ...] = ()
    skills: tuple[SkillInUse, ...] = ()
    # Files its rules name that are not as they should be, whether or not an older revision stands in.
    withheld: tuple[ContextFile, ...] = ()

    def of_kind(self, *kinds: str) -> list[FileInUse]:
        return [one for one in self.files if one.kind in kinds]


@dataclass(frozen=True)
class SkillDraft:
    """A skill as it would be after an edit, and whom it would be handed to; None leaves that as it is."""

    skill: Skill
    agent_ids: frozenset[int] | None = None


def given_to(agent: Agent) -> Given:
    return given_to_all(agent.workspace_id, [agent])[agent.pk]


def given_to_all(
    workspace: Workspace | int,
    agents: Sequence[Agent],
    draft: SkillDraft | None = None,
    stock: Stock | None = None,
) -> dict[int, Given]:
    """By agent; one query, and one for the files of those that read some, however many agents."""
    holdings = Holdings(workspace, agents, draft, stock)
    return {agent.pk: holdings.given(agent) for agent in agents}


class Holdings:
    """Files and skills of a workspace, loaded once for many agents."""

    def __init__(
        self,
        workspace: Workspace | int,
        agents: Sequence[Agent],
        draft: SkillDraft | None = None,
        stock: Stock | None = None,
    ) -> None:
        self.workspace, self.agents, self.draft = workspace, agents, draft
        self.stock = stock or Stock.around(workspace, agents)
        self.outlooks = {agent.pk: seen for agent in agents if (seen := self.outlook_of(agent))}
        self.found: dict[tuple[int, str, str], Found] = {}

    def outlook_of(self, agent: Agent) -> Outlook | None:
        if reads_nowhere(agent):
            return None
        return outlook(agent, self.line, self.stock.choices, self.stock.rules)

    @cached_property
    def line(self) -> dict[int, Agent]:
        """The agents themselves, drafted ones as they would be, and all that others stand below."""
        return self.stock.parents | {agent.pk: agent for agent in self.agents}

    def given(self, agent: Agent) -> Given:
        outlook = self.outlooks.get(agent.pk)
        found = self.found_for(outlook) if outlook else []
        skills = resolved([*self.written_for(agent), *self.discovered_for(agent, found, outlook)])
        return Given(
            outlook,
            tuple([FileInUse(kind, file) for kind, file in found if kind != "skill" and file.in_force_id]),
            tuple(skills),
            tuple([file for _, file in found if file.state in WITHHELD]),
        )

    def found_for(self, outlook: Outlook) -> Found:
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

    def written_for(self, agent: Agent) -> Iterable[SkillInUse]:
        for row in self.written:
            if row.for_all_agents or (row.pk, agent.pk) in self.written_links:
                yield SkillInUse(row.name, row.description, row.disable_model_invocation, skill=row)

    def discovered_for(self, agent: Agent, found: Found, outlook: Outlook | None) -> Iterable[SkillInUse]:
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
                yield judged_skill(file, harness)


def judged_skill(file: ContextFile, harness: str) -> SkillInUse:
    """A found skill as the agent's harness would take it."""
    revision = file.in_force
    head = revision.head if revision else {}
    verdict = judge(reading_of(head, revision.problems if revision else []), harness)
    return SkillInUse(
        head.get("name", file.name),
        head.get("description", ""),
        bool(head.get("disable_model_invocation")),
        file=file,
        dropped=() if verdict.kept else tuple([problem.message for problem in verdict.reasons]),
    )


def resolved(skills: Iterable[SkillInUse]) -> Iterable[SkillInUse]:
    """The first of a name wins: what is written here, then the harness's own order."""
    winners: dict[str, SkillInUse] = {}
    for one in skills:
        if not one.dropped and one.name in winners:
            yield replace(one, hidden_by=winners[one.name].place)
            continue
        if not one.dropped:
            winners[one.name] = one
        yield one

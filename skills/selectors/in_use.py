"""What an agent is given: the files in force for it, and its skills with duplicates resolved."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from personas.models import Agent
from skills.judging import reading_of
from skills.leniency import judge
from skills.models import ContextFile, Reach, Skill
from skills.selectors.contexts import Outlook, outlook_of


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
        return self.file.path if self.file else "written here"


@dataclass(frozen=True)
class Given:
    """All that files and skills give one agent."""

    outlook: Outlook | None
    files: tuple[FileInUse, ...] = ()
    skills: tuple[SkillInUse, ...] = ()
    # Files its rules name that no prompt may hold now, with their state: loud on the agent's page.
    withheld: tuple[ContextFile, ...] = field(default=())

    def of_kind(self, *kinds: str) -> list[FileInUse]:
        return [one for one in self.files if one.kind in kinds]


def given_to(agent: Agent, outlook: Outlook | None = None) -> Given:
    """The agent's files and skills as they stand; a fixed number of queries."""
    outlook = outlook or outlook_of(agent)
    found = list(found_for(outlook)) if outlook else []
    files = tuple(FileInUse(kind, file) for kind, file in found if kind != "skill" and file.in_force_id)
    return Given(
        outlook,
        files,
        tuple(resolved([*written_skills(agent), *found_skills(agent, found, outlook)])),
        tuple(file for _, file in found if file.state in {"invalid", "quarantined", "missing"}),
    )


def found_for(outlook: Outlook) -> Iterable[tuple[str, ContextFile]]:
    rows = ContextFile.objects.in_workspace(outlook.source.workspace_id).filter(source=outlook.source)
    rows = rows.exclude(is_ignored=True)
    files = {row.path: row for row in rows.select_related("in_force__content", "newest", "source")}
    # A missing file keeps its place only while it is in force.
    there = {path for path, file in files.items() if file.is_there or file.in_force_id}
    return [(kind, files[path]) for kind, path in outlook.paths(there)]


def written_skills(agent: Agent) -> list[SkillInUse]:
    rows = Skill.objects.in_workspace(agent.workspace_id).filter(archived_at=None)
    own = rows.filter(for_all_agents=True) | rows.filter(agent_links__agent=agent)
    return [
        SkillInUse(row.name, row.description, row.disable_model_invocation, skill=row)
        for row in own.distinct().order_by("name", "pk")
    ]


def found_skills(
    agent: Agent, found: Iterable[tuple[str, ContextFile]], outlook: Outlook | None
) -> Iterable[SkillInUse]:
    """Those the agent's rules find, in their order, then those handed to it."""
    by_rule = [file for kind, file in found if kind == "skill" and file.reach == Reach.FOUND]
    rows = ContextFile.objects.in_workspace(agent.workspace_id).filter(file_kind="skill", is_ignored=False)
    handed = rows.filter(reach=Reach.ALL) | rows.filter(reach=Reach.CHOSEN, agent_links__agent=agent)
    ordered = handed.distinct().select_related("in_force__content", "newest", "source").order_by("name", "pk")
    harness = outlook.harness.name if outlook else "plain"
    for file in [*by_rule, *ordered]:
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
        dropped=() if verdict.kept else tuple(problem.message for problem in verdict.reasons),
    )


def resolved(skills: Iterable[SkillInUse]) -> Iterable[SkillInUse]:
    """The first of a name wins: what is written here, then the harness's own order."""
    winners: dict[str, SkillInUse] = {}
    for one in skills:
        if one.dropped:
            yield one
        elif one.name in winners:
            yield SkillInUse(**{**vars(one), "hidden_by": winners[one.name].place})
        else:
            winners[one.name] = one
            yield one

"""The questions asked about skills."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from django.db.models import Count, Q, QuerySet

from personas.models import Agent, Workspace
from skills.agent_context.effective import AgentContextLoader, AgentSkill, get_effective_context
from skills.models import ContextFile, Reach, Skill
from skills.skill_format.parser import parse_skill
from skills.sources.readers import SourceReader


def list_skills(workspace: Workspace) -> QuerySet[Skill]:
    users = Count("agent_links", filter=Q(agent_links__agent__archived_at=None), distinct=True)
    return Skill.objects.in_workspace(workspace).annotate(agent_count=users).order_by("name", "pk")


def list_found_skills(workspace: Workspace) -> QuerySet[ContextFile]:
    """Skills that were found, with what they say now and what prompts use; ignored ones too."""
    rows = ContextFile.objects.in_workspace(workspace).filter(file_kind="skill")
    return rows.select_related("source", "newest", "in_force").order_by("name", "pk")


class SkillOrigin(NamedTuple):
    """Whose words these are: a record at a revision, or a file with the digest of what it said."""

    kind: str
    pk: int
    revision: int
    digest: str = ""


@dataclass(frozen=True)
class SkillInstructions:
    """A skill in full, for whoever was told its name."""

    name: str
    description: str
    body: str
    origin: SkillOrigin


def get_skill_instructions(agent: Agent, name: str) -> SkillInstructions | None:
    """What the agent's skill of this name says; None for one it does not have, or that lost to another."""
    used = next(
        (one for one in get_effective_context(agent).skills if one.is_used and one.name == name), None
    )
    return build_instructions(used) if used else None


def build_instructions(used: AgentSkill) -> SkillInstructions | None:
    if used.skill is not None:
        skill = used.skill
        return SkillInstructions(
            skill.name, skill.description, skill.body, SkillOrigin("skill", skill.pk, skill.revision)
        )
    return build_found_instructions(used, used.file) if used.file else None


def build_found_instructions(used: AgentSkill, file: ContextFile) -> SkillInstructions | None:
    """The body is read out of the stored words; those that were erased tell nothing any more."""
    revision = file.in_force
    if revision is None or revision.content.data is None:
        return None
    parsed = parse_skill(bytes(revision.content.data), folder_name=get_folder_name(file.path)).skill
    origin = SkillOrigin("file", file.pk, revision.number, revision.digest)
    return SkillInstructions(used.name, used.description, parsed.body, origin) if parsed else None


def get_folder_name(path: str) -> str:
    """The name of the folder that a SKILL.md lies in."""
    return path.split("/")[-2] if "/" in path else ""


AssignmentKind = Literal["attached", "for all", "found", "handed", "handed to all"]


@dataclass(frozen=True)
class AgentSkillEntry:
    """A skill in an agent's list, and the way it came there."""

    used: AgentSkill
    way: AssignmentKind

    @property
    def kind(self) -> str:
        return "skill" if self.used.skill else "context_file"

    @property
    def key(self) -> int:
        row = self.used.skill or self.used.file
        return row.pk if row else 0


def get_agent_skills(agent: Agent) -> tuple[SourceReader | None, list[AgentSkillEntry]]:
    """From where it reads, and all its skills, those that lost to a namesake included; three queries."""
    given = AgentContextLoader(agent).given(agent)
    return given.outlook, [AgentSkillEntry(one, get_assignment_kind(one)) for one in given.skills]


def get_assignment_kind(one: AgentSkill) -> AssignmentKind:
    if one.skill is not None:
        return "for all" if one.skill.for_all_agents else "attached"
    reach = one.file.reach if one.file else Reach.FOUND
    return "found" if reach == Reach.FOUND else "handed to all" if reach == Reach.ALL else "handed"

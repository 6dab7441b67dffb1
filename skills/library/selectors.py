"""The questions asked about skills."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from django.db.models import Count, Q, QuerySet

from personas.models import Agent, Workspace
from skills.agent_context.effective import OneAgent, SkillInUse, given_to
from skills.models import ContextFile, Reach, Skill
from skills.skill_format.parser import parse_skill
from skills.sources.readers import Outlook


def skills_of(workspace: Workspace) -> QuerySet[Skill]:
    users = Count("agent_links", filter=Q(agent_links__agent__archived_at=None), distinct=True)
    return Skill.objects.in_workspace(workspace).annotate(agent_count=users).order_by("name", "pk")


def found_skills_of(workspace: Workspace) -> QuerySet[ContextFile]:
    """Skills that were found, with what they say now and what prompts use; ignored ones too."""
    rows = ContextFile.objects.in_workspace(workspace).filter(file_kind="skill")
    return rows.select_related("source", "newest", "in_force").order_by("name", "pk")


class Origin(NamedTuple):
    """Whose words these are: a record at a revision, or a file with the digest of what it said."""

    kind: str
    pk: int
    revision: int
    digest: str = ""


@dataclass(frozen=True)
class Instructions:
    """A skill in full, for whoever was told its name."""

    name: str
    description: str
    body: str
    origin: Origin


def skill_instructions(agent: Agent, name: str) -> Instructions | None:
    """What the agent's skill of this name says; None for one it does not have, or that lost to another."""
    used = next((one for one in given_to(agent).skills if one.is_used and one.name == name), None)
    return instructions_of(used) if used else None


def instructions_of(used: SkillInUse) -> Instructions | None:
    if used.skill is not None:
        skill = used.skill
        return Instructions(
            skill.name, skill.description, skill.body, Origin("skill", skill.pk, skill.revision)
        )
    return found_instructions(used, used.file) if used.file else None


def found_instructions(used: SkillInUse, file: ContextFile) -> Instructions | None:
    """The body is read out of the stored words; those that were erased tell nothing any more."""
    revision = file.in_force
    if revision is None or revision.content.data is None:
        return None
    parsed = parse_skill(bytes(revision.content.data), folder_name=folder_of(file.path)).skill
    origin = Origin("file", file.pk, revision.number, revision.digest)
    return Instructions(used.name, used.description, parsed.body, origin) if parsed else None


def folder_of(path: str) -> str:
    """The name of the folder that a SKILL.md lies in."""
    return path.split("/")[-2] if "/" in path else ""


Way = Literal["attached", "for all", "found", "handed", "handed to all"]


@dataclass(frozen=True)
class OwnSkill:
    """A skill in an agent's list, and the way it came there."""

    used: SkillInUse
    way: Way

    @property
    def kind(self) -> str:
        return "skill" if self.used.skill else "context_file"

    @property
    def key(self) -> int:
        row = self.used.skill or self.used.file
        return row.pk if row else 0


def skills_of_agent(agent: Agent) -> tuple[Outlook | None, list[OwnSkill]]:
    """From where it reads, and all its skills, those that lost to a namesake included; three queries."""
    given = OneAgent(agent).given(agent)
    return given.outlook, [OwnSkill(one, way_of(one)) for one in given.skills]


def way_of(one: SkillInUse) -> Way:
    if one.skill is not None:
        return "for all" if one.skill.for_all_agents else "attached"
    reach = one.file.reach if one.file else Reach.FOUND
    return "found" if reach == Reach.FOUND else "handed to all" if reach == Reach.ALL else "handed"

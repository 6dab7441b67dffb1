"""Queries on skills: records, discovered skills, an agent's skills and their instructions."""

from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import Count, Q, QuerySet, TextChoices
from django.utils.translation import gettext_lazy as _

from personas.models import Agent, Workspace
from skills.agent_context.effective import AgentContextLoader, AgentSkill
from skills.agent_context.skill_validity import SkillReaders
from skills.files.selectors import get_known_paths, list_bundled_paths, list_untrusted_skills
from skills.models import AssignedTo, ContextFile, Skill, SourceKind
from skills.skill_format.references import list_referenced_paths
from skills.sources.readers import ContextReader, get_readers_by_agent


def list_skills(workspace: Workspace | int) -> QuerySet[Skill]:
    users = Count("agent_links", filter=Q(agent_links__agent__archived_at=None), distinct=True)
    return Skill.objects.in_workspace(workspace).annotate(agent_count=users).order_by("name", "pk")


def list_found_skills(workspace: Workspace) -> QuerySet[ContextFile]:
    """Return discovered skills, including ignored ones, with their latest revision and the active one."""
    rows = ContextFile.objects.in_workspace(workspace).filter(file_kind="skill")
    return rows.select_related("source", "latest", "active").order_by("name", "pk")


class SkillLosingUse(NamedTuple):
    """A skill in use that nobody has trusted, and the agents that read it."""

    file: ContextFile
    agents: list[Agent]


def list_skills_losing_use(workspace: Workspace) -> list[SkillLosingUse]:
    """List the skills that prompts would lose if found skills needed trust."""
    files = list(list_untrusted_skills(workspace))
    if workspace.skills_need_trust or not files:
        return []
    _known_paths, live_paths = get_known_paths(workspace, {file.source_id for file in files})
    readers = SkillReaders(workspace, get_readers_by_agent(workspace), live_paths)
    return [SkillLosingUse(file, readers.list_agents(file)) for file in files]


class SkillOrigin(NamedTuple):
    """Where a skill's text comes from: a revision of a skill record, or of a file with its digest."""

    kind: str
    pk: int
    revision: int
    digest: str = ""


def list_uncopied_files(file: ContextFile, body: str) -> list[str]:
    """List the further files of a discovered skill, which a skill record cannot hold.

    The files of a folder source are not stored, so the list contains those that the instructions name.
    """
    if file.source.source_kind == SourceKind.PUSHED:
        return list_bundled_paths(file)
    return list_referenced_paths(body)


def get_folder_name(path: str) -> str:
    """Return the name of the folder that contains a SKILL.md."""
    return path.split("/")[-2] if "/" in path else ""


class AssignmentKind(TextChoices):
    """How an agent got a skill."""

    ATTACHED = "attached", _("Attached to this agent")
    FOR_ALL = "for_all", _("For all agents")
    FOUND = "found", _("Found by this agent's discovery rules")
    ASSIGNED = "assigned", _("Assigned to this agent")
    ASSIGNED_TO_ALL = "assigned_to_all", _("Assigned to all agents")


@dataclass(frozen=True)
class AgentSkillEntry:
    """A skill in an agent's list, and how it was assigned."""

    skill: AgentSkill
    assignment: AssignmentKind

    @property
    def kind(self) -> str:
        return "skill" if self.skill.skill else "context_file"

    @property
    def key(self) -> int:
        row = self.skill.skill or self.skill.file
        return row.pk if row else 0


def get_agent_skills(agent: Agent) -> tuple[ContextReader | None, list[AgentSkillEntry]]:
    """Return the agent's source reader and all its skills, with three queries.

    Skills that are hidden by another skill of the same name are included.
    """
    context = AgentContextLoader(agent).get_context(agent)
    return context.reader, [AgentSkillEntry(skill, get_assignment_kind(skill)) for skill in context.skills]


def get_assignment_kind(agent_skill: AgentSkill) -> AssignmentKind:
    if agent_skill.skill is not None:
        return AssignmentKind.FOR_ALL if agent_skill.skill.for_all_agents else AssignmentKind.ATTACHED
    assigned_to = agent_skill.file.assigned_to if agent_skill.file else AssignedTo.WHERE_FOUND
    if assigned_to == AssignedTo.WHERE_FOUND:
        return AssignmentKind.FOUND
    return AssignmentKind.ASSIGNED_TO_ALL if assigned_to == AssignedTo.ALL else AssignmentKind.ASSIGNED

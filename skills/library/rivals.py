"""Skills of one name: where they are, and which of them each agent gets."""

from collections.abc import Sequence
from dataclasses import dataclass

from personas.models import Agent
from skills.agent_context.effective import SkillInUse, given_to_all
from skills.models import ContextFile, Skill


@dataclass(frozen=True)
class Rivals:
    """Others that bear a found skill's name."""

    written: list[Skill]
    found: list[ContextFile]

    def __bool__(self) -> bool:
        return bool(self.written or self.found)


def rivals_of(file: ContextFile) -> Rivals:
    if file.file_kind != "skill" or not file.name:
        return Rivals([], [])
    written = Skill.objects.in_workspace(file.workspace_id).filter(name=file.name, archived_at=None)
    found = ContextFile.objects.in_workspace(file.workspace_id).filter(file_kind="skill", name=file.name)
    others = found.filter(is_ignored=False, source__archived_at=None).exclude(pk=file.pk)
    return Rivals(list(written), list(others.select_related("source").order_by("source__label", "path")))


def winners_of(name: str, agents: Sequence[Agent]) -> list[tuple[Agent, SkillInUse | None]]:
    """For each agent the skill it really gets by that name."""
    if not agents:
        return []
    given = given_to_all(agents[0].workspace_id, agents)
    return [
        (agent, next((one for one in given[agent.pk].skills if one.name == name and one.is_used), None))
        for agent in agents
    ]

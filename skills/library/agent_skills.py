"""The skills of one agent, each with how it came to have it."""

from dataclasses import dataclass
from typing import Literal

from personas.models import Agent
from skills.agent_context.effective import SkillInUse
from skills.agent_context.one_agent import OneAgent
from skills.models import Reach
from skills.sources.readers import Outlook

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

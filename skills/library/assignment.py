"""Hands skills that are written here to agents, and takes them back."""

from django.db import transaction
from django.utils.translation import gettext as _

from personas.actors import Actor
from personas.errors import DomainError
from personas.models import Agent
from personas.records.services import edit_record, locked
from skills.models import Skill


@transaction.atomic
def give_skill(skill: Skill, agent: Agent, *, by: Actor) -> Skill:
    """One more agent has it; whoever has it already goes on having it."""
    skill = locked(skill)
    refuse_unless_chosen(skill)
    holders = holders_of(skill)
    if agent in holders:
        return skill
    return change_holders(skill, [*holders, agent], f"Given to {agent}", by=by)


@transaction.atomic
def take_skill(skill: Skill, agent: Agent, *, by: Actor) -> Skill:
    """One agent fewer has it."""
    skill = locked(skill)
    refuse_unless_chosen(skill)
    holders = holders_of(skill)
    if agent not in holders:
        raise DomainError(_("%(agent)s does not have it.") % {"agent": agent})
    return change_holders(skill, [one for one in holders if one != agent], f"Taken from {agent}", by=by)


@transaction.atomic
def give_skill_to_all(skill: Skill, *, by: Actor) -> Skill:
    """Every agent has it, those to come too."""
    skill = locked(skill)
    values = {"for_all_agents": True}
    return edit_record(skill, values, expected=skill.revision, by=by, message="Given to all agents")


def refuse_unless_chosen(skill: Skill) -> None:
    if skill.is_archived:
        raise DomainError(_("It is archived."))
    if skill.for_all_agents:
        raise DomainError(_("Every agent has it."))


def holders_of(skill: Skill) -> list[Agent]:
    rows = Agent.objects.in_workspace(skill.workspace_id).filter(skill_links__skill=skill)
    return list(rows.order_by("pk"))


def change_holders(skill: Skill, agents: list[Agent], said: str, *, by: Actor) -> Skill:
    values = {"agents": agents}
    return edit_record(skill, values, expected=skill.revision, by=by, message=said[:200])

"""From a form's values to a draft: the record as it would be, and the agents it would touch."""

from copy import copy
from typing import Any

from personas.models import Agent, Memory, Record, Responsibility
from prompts.gathering import Draft
from skills.models import Skill


def draft_of(record: Record, values: dict[str, Any]) -> Draft:
    """A copy that carries the new values and the next revision; the record itself stays as it is."""
    drafted = copy(record)
    drafted._state = copy(record._state)
    drafted._state.fields_cache = dict(record._state.fields_cache)
    drafted.put(values)
    drafted.revision = record.revision + 1
    agents = values.get("agents")
    return Draft(
        drafted,
        tools=values.get("tools") if isinstance(record, Agent) else None,
        planning_tools=values.get("planning_tools") if isinstance(record, Agent) else None,
        channels=values.get("channels") if isinstance(record, Agent) else None,
        agent_ids=frozenset(agent.pk for agent in agents)
        if isinstance(record, Skill) and agents is not None
        else None,
    )


def agents_touched(record: Record, draft: Draft) -> list[int]:
    """Whoever it feeds now, and whoever it would feed."""
    before = set(record.agent_ids()) if record.pk else set()
    return sorted(before | after_ids(draft))


def after_ids(draft: Draft) -> set[int]:
    drafted = draft.record
    if isinstance(drafted, Skill):
        if drafted.for_all_agents:
            return every_agent(drafted)
        return set(draft.agent_ids or ())
    if isinstance(drafted, Memory):
        return {drafted.agent_id} if drafted.agent_id is not None else every_agent(drafted)
    if isinstance(drafted, Responsibility):
        return {drafted.agent_id}
    return set(drafted.agent_ids()) if drafted.pk else set()


def every_agent(record: Record) -> set[int]:
    agents = Agent.objects.in_workspace(record.workspace_id).filter(archived_at=None)
    return set(agents.values_list("pk", flat=True))

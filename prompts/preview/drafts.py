"""From values to a draft: the record as it would be, and the agents it would touch."""

from collections.abc import Collection
from copy import copy
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet

from personas.errors import Invalid
from personas.models import Agent, Memory, Record, Responsibility, Workspace
from personas.records.forms import RecordForm
from prompts.inputs import Draft
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


def checked_draft(record: Record, values: dict[str, Any], *, derived: Collection[str] = ()) -> Draft:
    """A draft that saving would take as it stands; else Invalid, with the fields that are at fault."""
    draft, model = draft_of(record, values), type(record)
    own = {field.name for field in model._meta.concrete_fields} - set(model.content)
    try:
        draft.record.full_clean(exclude={*derived, *own}, validate_unique=False, validate_constraints=False)
    except ValidationError as error:
        raise Invalid.from_validation(error) from error
    return draft


def draft_in(form: RecordForm, record: Record) -> Draft:
    """What a valid form would make of the record; the rules of the model are asked too."""
    values = form.values()
    asked = set(form.fields)
    return checked_draft(record, values, derived=[name for name in record.content if name not in asked])


def new_record(model: type[Record], workspace: Workspace, values: dict[str, Any]) -> Record:
    """The record that these values would make, with what can be said only once; not saved."""
    own = {field.name for field in model._meta.concrete_fields} - set(model.content)
    return model(workspace=workspace, **{name: value for name, value in values.items() if name in own})


def agents_touched(record: Record, draft: Draft) -> "QuerySet[Agent, int]":
    """Whoever it feeds now, and whoever it would feed; a question, to be asked along with others."""
    agents = Agent.objects.in_workspace(record.workspace_id)
    touched = Q(pk__in=fed_now(record)) | Q(pk__in=after_ids(draft))
    if feeds_all(draft.record):
        touched |= Q(archived_at=None)
    return agents.filter(touched).values_list("pk", flat=True)


def fed_now(record: Record) -> "QuerySet[Any, int] | list[int]":
    if not record.pk:
        return []
    fed = record.agents_fed()
    return record.agent_ids() if fed is None else fed.order_by()


def feeds_all(record: Record) -> bool:
    if isinstance(record, Skill):
        return record.for_all_agents
    return isinstance(record, Memory) and record.agent_id is None


def after_ids(draft: Draft) -> set[int]:
    drafted = draft.record
    if isinstance(drafted, Skill):
        return set(draft.agent_ids or ())
    if isinstance(drafted, Memory | Responsibility) and drafted.agent_id is not None:
        return {drafted.agent_id}
    # All else is chosen elsewhere: whoever it feeds now, it feeds then.
    return set()

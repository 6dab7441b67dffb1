"""From values to a draft: the record as it would be, and the agents it would touch."""

from collections.abc import Collection
from copy import copy
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet

from personas.errors import InvalidInput
from personas.models import Agent, Memory, Record, Responsibility, Workspace
from personas.records.forms import RecordForm
from prompts.inputs import DraftRecord
from skills.models import Skill


def build_draft(record: Record, values: dict[str, Any]) -> DraftRecord:
    """A copy that carries the new values and the next revision; the record itself stays as it is."""
    drafted = copy(record)
    drafted._state = copy(record._state)
    drafted._state.fields_cache = dict(record._state.fields_cache)
    drafted.set_values(values)
    drafted.revision = record.revision + 1
    agents = values.get("agents")
    return DraftRecord(
        drafted,
        tools=values.get("tools") if isinstance(record, Agent) else None,
        planning_tools=values.get("planning_tools") if isinstance(record, Agent) else None,
        channels=values.get("channels") if isinstance(record, Agent) else None,
        agent_ids=frozenset(agent.pk for agent in agents)
        if isinstance(record, Skill) and agents is not None
        else None,
    )


def build_valid_draft(
    record: Record, values: dict[str, Any], *, derived: Collection[str] = ()
) -> DraftRecord:
    """A draft that saving would take as it stands; else Invalid, with the fields that are at fault."""
    draft, model = build_draft(record, values), type(record)
    own = {field.name for field in model._meta.concrete_fields} - set(model.content)
    try:
        draft.record.full_clean(exclude={*derived, *own}, validate_unique=False, validate_constraints=False)
    except ValidationError as error:
        raise InvalidInput.from_validation(error) from error
    return draft


def build_form_draft(form: RecordForm, record: Record) -> DraftRecord:
    """What a valid form would make of the record; the rules of the model are asked too."""
    values = form.values()
    asked = set(form.fields)
    return build_valid_draft(record, values, derived=[name for name in record.content if name not in asked])


def build_new_record(model: type[Record], workspace: Workspace, values: dict[str, Any]) -> Record:
    """The record that these values would make, with what can be said only once; not saved."""
    own = {field.name for field in model._meta.concrete_fields} - set(model.content)
    return model(workspace=workspace, **{name: value for name, value in values.items() if name in own})


def list_affected_agents(record: Record, draft: DraftRecord) -> "QuerySet[Agent, int]":
    """Whoever it feeds now, and whoever it would feed; a question, to be asked along with others."""
    agents = Agent.objects.in_workspace(record.workspace_id)
    touched = Q(pk__in=list_current_agents(record)) | Q(pk__in=list_draft_agents(draft))
    if is_for_all_agents(draft.record):
        touched |= Q(archived_at=None)
    return agents.filter(touched).values_list("pk", flat=True)


def list_current_agents(record: Record) -> "QuerySet[Any, int] | list[int]":
    if not record.pk:
        return []
    fed = record.query_agent_ids()
    return record.agent_ids() if fed is None else fed.order_by()


def is_for_all_agents(record: Record) -> bool:
    if isinstance(record, Skill):
        return record.for_all_agents
    return isinstance(record, Memory) and record.agent_id is None


def list_draft_agents(draft: DraftRecord) -> set[int]:
    drafted = draft.record
    if isinstance(drafted, Skill):
        return set(draft.agent_ids or ())
    if isinstance(drafted, Memory | Responsibility) and drafted.agent_id is not None:
        return {drafted.agent_id}
    # All else is chosen elsewhere: whoever it feeds now, it feeds then.
    return set()

"""Build draft records from unsaved values, and find the agents that a draft affects."""

from collections.abc import Collection
from copy import copy
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet

from personas.errors import InvalidInput
from personas.models import Agent, Memory, Record, Responsibility, Workspace
from personas.records.forms import RecordForm
from prompts.models import PromptSettings
from prompts.publishing.inputs import DraftRecord
from prompts.publishing.settings.selectors import AGENTS_BY_SETTINGS
from skills.models import Skill


def build_draft(record: Record, values: dict[str, Any]) -> DraftRecord:
    """Copy the record with the new values and the next revision number; the record is unchanged."""
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
    """Build a draft and run model validation; raise InvalidInput with the field errors."""
    draft, model = build_draft(record, values), type(record)
    own = {field.name for field in model._meta.concrete_fields} - set(model.content)
    try:
        draft.record.full_clean(exclude={*derived, *own}, validate_unique=False, validate_constraints=False)
    except ValidationError as error:
        raise InvalidInput.from_validation(error) from error
    return draft


def build_form_draft(form: RecordForm, record: Record) -> DraftRecord:
    """Build a draft from a valid form, including model validation."""
    values = form.values()
    field_names = set(form.fields)
    return build_valid_draft(
        record, values, derived=[name for name in record.content if name not in field_names]
    )


def build_new_record(model: type[Record], workspace: Workspace, values: dict[str, Any]) -> Record:
    """Build an unsaved record with the fields that are set only on creation.

    `build_draft` sets the other fields.
    """
    own = {field.name for field in model._meta.concrete_fields} - set(model.content)
    return model(workspace=workspace, **{name: value for name, value in values.items() if name in own})


def list_affected_agents(record: Record, draft: DraftRecord) -> "QuerySet[Agent, int]":
    """Return a query for the ids of agents that use the record now or would use the draft."""
    agents = Agent.objects.in_workspace(record.workspace_id)
    condition = Q(pk__in=list_current_agents(record)) | Q(pk__in=list_draft_agents(draft))
    if is_for_all_agents(draft.record):
        condition |= Q(archived_at=None)
    return agents.filter(condition).values_list("pk", flat=True)


def list_current_agents(record: Record) -> "QuerySet[Any, int] | list[int]":
    if not record.pk:
        return []
    fed = record.query_agent_ids()
    # The query `fed` loads no ids, but does not include agents that use the record through prompt settings.
    return record.agent_ids() if fed is None or AGENTS_BY_SETTINGS.list_ids(record) else fed.order_by()


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
    if isinstance(drafted, PromptSettings):
        return set(drafted.agent_ids())
    # Other kinds are assigned on the agent's side, so the draft does not change which agents use them.
    return set()

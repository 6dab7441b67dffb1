"""Queries of prompt settings."""

from functools import cache
from typing import Any

from django.db.models import IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from core.db.compiled_query import CompiledQuery, fetch_together
from personas.api.authentication import ApiClient
from personas.models import Record, Workspace
from personas.records.models import AgentIdQuery, read_agent_ids
from prompts.models import PromptSettings

LINKED_FIELDS = ("identity", "soul", "user_profile")


def list_levels_with_settings(workspace: Workspace) -> list[PromptSettings]:
    """List the settings of the levels that set any value; a level may have been cleared."""
    rows = PromptSettings.objects.in_workspace(workspace).select_related("agent", "channel", *LINKED_FIELDS)
    ordered = rows.order_by("agent__name", "channel__name", "pk")
    return [row for row in ordered if row.has_values]


def bind_agents_by_settings(record: Record) -> AgentIdQuery | None:
    """Return the query for agents for which prompt settings choose this identity, soul or user profile."""
    if record.kind not in LINKED_FIELDS or record.pk is None:
        return None
    bound = get_settings_query(record.kind).bind(record.workspace_id, record.pk)
    return AgentIdQuery(bound, lambda rows: {pk for row in rows for pk in row.agent_ids()})


def query_records_in_settings(caller: ApiClient, kind: str) -> "QuerySet[Any, Any]":
    """Return the ids of the records of a kind that prompt settings within the limits of a key choose."""
    rows = PromptSettings.objects.in_workspace(caller.workspace).filter(archived_at=None)
    if kind not in LINKED_FIELDS:
        return rows.none().values("pk")
    for dimension in ("agent", "channel"):
        if (names := caller.key.scopes.get(f"{dimension}s")) is not None:
            rows = rows.filter(**{f"{dimension}__slug__in": names})
    used: QuerySet[Any, Any] = rows.exclude(**{kind: None}).values(kind)
    return used


def list_default_record_ids(workspace: Workspace, kind: str) -> set[int]:
    """Return the id of the record that agents without an own one get by the settings of the workspace."""
    rows = PromptSettings.objects.in_workspace(workspace).filter(archived_at=None, agent=None, channel=None)
    return set(rows.exclude(**{kind: None}).values_list(kind, flat=True))


def list_agents_by_settings(record: Record) -> list[int]:
    query = bind_agents_by_settings(record)
    return read_agent_ids([query], fetch_together([query.bound])) if query else []


@cache
def get_settings_query(link: str) -> CompiledQuery[[int, int], PromptSettings]:
    def build(workspace: int, pk: int) -> QuerySet[PromptSettings]:
        return PromptSettings.objects.in_workspace(workspace).filter(archived_at=None, **{link: pk})

    return CompiledQuery(build)


def build_effective_budget(workspace: Workspace | int) -> Coalesce:
    """Build an SQL expression for the effective token budget of a prompt.

    It is the budget of the prompt, else of the channel, else of the agent, else of the workspace.
    """
    rows = PromptSettings.objects.in_workspace(workspace).filter(archived_at=None, token_budget__isnull=False)
    levels: list[dict[str, Any]] = [
        {"agent": OuterRef("agent_id"), "channel": OuterRef("channel_id")},
        {"agent": None, "channel": OuterRef("channel_id")},
        {"agent": OuterRef("agent_id"), "channel": None},
        {"channel": None, "agent": None},
    ]
    budgets = [Subquery(rows.filter(**level).values("token_budget")[:1]) for level in levels]
    return Coalesce(*budgets, output_field=IntegerField())

"""Queries of prompt settings."""

from collections.abc import Iterable
from typing import Any

from django.db.models import IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from personas.api.authentication import ApiClient
from personas.models import Workspace
from personas.records.models import AgentIdSource
from prompts.models import PromptSettings

LINKED_FIELDS = ("identity", "soul", "user_profile")


def list_levels_with_settings(workspace: Workspace) -> list[PromptSettings]:
    """List the settings of the levels that set any value; a level may have been cleared."""
    rows = PromptSettings.objects.in_workspace(workspace).select_related("agent", "channel", *LINKED_FIELDS)
    ordered = rows.order_by("agent__name", "channel__name", "pk")
    return [row for row in ordered if row.has_values]


def list_settings_with(kind: str, workspace: int, pk: int) -> QuerySet[PromptSettings]:
    """List the prompt settings that choose this identity, soul or user profile."""
    return PromptSettings.objects.in_workspace(workspace).filter(archived_at=None, **{kind: pk})


def list_agent_ids_of(settings: Iterable[PromptSettings]) -> set[int]:
    return {pk for row in settings for pk in row.agent_ids()}


AGENTS_BY_SETTINGS = AgentIdSource(LINKED_FIELDS, list_settings_with, list_agent_ids_of)


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

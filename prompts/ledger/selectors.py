"""Ledger queries: which prompts were served to whom."""

from dataclasses import dataclass
from datetime import datetime

from django.db import DEFAULT_DB_ALIAS
from django.db.models import QuerySet

from core.db.keyset_pagination import KeysetPage, get_keyset_page
from personas.models import Workspace
from prompts.models import AgentPrompt, LedgerEntry
from prompts.versions.selectors import list_heavy_columns

DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE = 50, 200


@dataclass(frozen=True)
class LedgerFilter:
    """Filters of a ledger query. Empty values and None do not filter."""

    agent: str = ""
    channel: str = ""
    key_id: int | None = None
    version_id: int | None = None
    status: int | None = None
    label: str = ""
    request_id: str = ""
    since: datetime | None = None
    until: datetime | None = None


def get_ledger_page(
    workspace: Workspace | int,
    filters: LedgerFilter,
    *,
    before: int | None = None,
    limit: int = DEFAULT_PAGE_SIZE,
    using: str = DEFAULT_DB_ALIAS,
) -> KeysetPage[LedgerEntry]:
    return get_keyset_page(
        list_ledger_entries(workspace, filters).using(using),
        before=before,
        cursor_rows=LedgerEntry.objects.in_workspace(workspace).using(using),
        limit=max(1, min(limit, MAX_PAGE_SIZE)),
    )


def list_ledger_entries(workspace: Workspace | int, filters: LedgerFilter) -> QuerySet[LedgerEntry]:
    rows = LedgerEntry.objects.in_workspace(workspace)
    conditions = {
        "key_id": filters.key_id,
        "version_id": filters.version_id,
        "status": filters.status,
        "label": filters.label or None,
        "request_id": filters.request_id or None,
        "at__gte": filters.since,
        "at__lt": filters.until,
    }
    rows = rows.filter(**{name: value for name, value in conditions.items() if value is not None})
    if filters.agent or filters.channel:
        rows = rows.filter(prompt__in=find_prompt_ids(workspace, filters.agent, filters.channel))
    relations = ("key", "prompt__agent", "prompt__channel", "version")
    return rows.select_related(*relations).defer(*list_heavy_columns("version")).order_by("-at", "-pk")


def find_prompt_ids(workspace: Workspace | int, agent: str, channel: str) -> list[int]:
    """Return the ids of the prompts of this agent and channel; an empty slug matches all.

    They are a list, not a subquery: with literal ids, the database uses the ledger's index by prompt.
    """
    rows = AgentPrompt.objects.in_workspace(workspace)
    rows = rows.filter(agent__slug=agent) if agent else rows
    rows = rows.filter(channel__slug=channel) if channel else rows
    return list(rows.values_list("pk", flat=True))

"""Ledger queries: which prompts were served to whom."""

from dataclasses import dataclass
from datetime import datetime

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Q, QuerySet

from personas.models import Workspace
from prompts.models import AgentPrompt, LedgerEntry

DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE = 50, 200


@dataclass(frozen=True)
class LedgerFilter:
    """What to look for; what is left empty is not asked about."""

    agent: str = ""
    channel: str = ""
    key_id: int | None = None
    version_id: int | None = None
    status: int | None = None
    label: str = ""
    request_id: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class LedgerPage:
    """Rows, newest first, and the id to go on from; None at the end."""

    rows: list[LedgerEntry]
    next_cursor: int | None


def get_ledger_page(
    workspace: Workspace | int,
    wanted: LedgerFilter,
    *,
    before: int | None = None,
    limit: int = DEFAULT_PAGE_SIZE,
    using: str = DEFAULT_DB_ALIAS,
) -> LedgerPage:
    limit = max(1, min(limit, MAX_PAGE_SIZE))
    rows = list_ledger_entries(workspace, wanted).using(using)
    if before is not None:
        rows = rows.filter(build_older_than_filter(workspace, before, using))
    found = list(rows[: limit + 1])
    return LedgerPage(found[:limit], found[limit - 1].pk if len(found) > limit else None)


def build_older_than_filter(workspace: Workspace | int, row_id: int, using: str = DEFAULT_DB_ALIAS) -> Q:
    """Whatever comes after this row when the newest stands first."""
    rows = LedgerEntry.objects.in_workspace(workspace).using(using).filter(pk=row_id)
    at = rows.values_list("at", flat=True).first()
    if at is None:
        # Rolled off while somebody was reading: all that is left after it has a smaller id, if any.
        return Q(pk__lt=row_id)
    # The first condition follows from the second; it is the one that an index answers.
    return Q(at__lte=at) & (Q(at__lt=at) | Q(pk__lt=row_id))


def list_ledger_entries(workspace: Workspace | int, wanted: LedgerFilter) -> QuerySet[LedgerEntry]:
    rows = LedgerEntry.objects.in_workspace(workspace)
    exact = {
        "key_id": wanted.key_id,
        "version_id": wanted.version_id,
        "status": wanted.status,
        "label": wanted.label or None,
        "request_id": wanted.request_id or None,
        "at__gte": wanted.since,
        "at__lt": wanted.until,
    }
    rows = rows.filter(**{name: value for name, value in exact.items() if value is not None})
    if wanted.agent or wanted.channel:
        rows = rows.filter(prompt__in=find_prompt_ids(workspace, wanted.agent, wanted.channel))
    links = ("key", "prompt__agent", "prompt__channel", "version")
    return rows.select_related(*links).defer(*list_heavy_columns("version")).order_by("-at", "-pk")


def find_prompt_ids(workspace: Workspace | int, agent: str, channel: str) -> list[int]:
    """Few, and told to the database one by one: it then finds the rows by their index."""
    rows = AgentPrompt.objects.in_workspace(workspace)
    rows = rows.filter(agent__slug=agent) if agent else rows
    rows = rows.filter(channel__slug=channel) if channel else rows
    return list(rows.values_list("pk", flat=True))


def list_heavy_columns(path: str) -> list[str]:
    """The columns of a version that no list shows."""
    return [f"{path}__{name}" for name in ("segments", "sizes", "lockfile", "causes")]

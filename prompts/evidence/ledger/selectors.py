"""Ledger queries: which prompts were served to whom, and how many a day."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Count, QuerySet
from django.db.models.functions import TruncDate
from django.utils import timezone

from core.db.keyset_pagination import KeysetPage, get_keyset_page
from personas.models import Workspace
from prompts.models import AgentPrompt, LedgerEntry
from prompts.publishing.versions.selectors import list_heavy_columns

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
    trace_id: str = ""
    # "prompt" or "skill".
    kind: str = ""
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
        "traceparent__contains": f"-{filters.trace_id}-" if filters.trace_id else None,
        "skill__isnull": filters.kind == "prompt" if filters.kind else None,
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


CHART_DAYS = 14


@dataclass(frozen=True)
class DailyFetches:
    """The number of fetches on each of the last days, oldest first; the last day is today."""

    days: Sequence[date]
    counts: Sequence[int]

    @property
    def total(self) -> int:
        return sum(self.counts)

    @property
    def highest(self) -> int:
        return max(self.counts, default=0)


def count_daily_fetches(
    workspace: Workspace | int, agents: Collection[int], *, now: datetime | None = None
) -> dict[int, DailyFetches]:
    """Count the fetches of each agent on the last CHART_DAYS days, in the current time zone, by agent id."""
    today = timezone.localdate(now or timezone.now())
    days = [today - timedelta(days=ago) for ago in reversed(range(CHART_DAYS))]
    prompts = dict(
        AgentPrompt.objects.in_workspace(workspace).filter(agent__in=agents).values_list("pk", "agent_id")
    )
    rows = LedgerEntry.objects.in_workspace(workspace).filter(
        prompt__in=prompts, at__gte=timezone.make_aware(datetime.combine(days[0], datetime.min.time()))
    )
    counted = rows.annotate(day=TruncDate("at")).values_list("prompt_id", "day").annotate(count=Count("pk"))
    counts: dict[int, dict[date, int]] = defaultdict(lambda: defaultdict(int))
    for prompt, day, count in counted.order_by():
        counts[prompts[prompt]][day] += count
    return {agent: DailyFetches(days, [counts[agent][day] for day in days]) for agent in agents}

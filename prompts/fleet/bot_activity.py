"""Bot activity from the ledger: recently active bots, outdated bots, and fetches per hour.

A bot is an API key. It is outdated if its last fetch returned another version than a fetch would now.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import NamedTuple

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Count, F, Max, Q, QuerySet
from django.db.models.functions import TruncHour
from django.utils import timezone
from django.utils.formats import time_format

from core.db.compiled_query import CompiledQuery
from personas.models import ApiKey, Workspace
from prompts.ledger.outdated_bots import CURRENT_VERSION_CONDITION, annotate_current_label
from prompts.models import AgentPrompt, LedgerEntry

ACTIVE_WINDOW, OUTDATED_WINDOW = timedelta(hours=1), timedelta(hours=24)


# Ids of key, prompt, the newest fetch and the newest one with the current version; time of the newest fetch.
FetchRow = tuple[int, int, int, int | None, datetime]


class BotFetch(NamedTuple):
    """The last fetch of a prompt by one API key; it is recent, outdated or both."""

    key_id: int
    prompt_id: int
    is_recent: bool
    is_outdated: bool


@dataclass(frozen=True)
class BotActivity:
    """Numbers of API keys by prompt id, and in total.

    `recent` counts keys that fetched the prompt in the last hour. `outdated` counts keys whose last fetch in
    the last 24 hours returned a version that is no longer current.
    """

    recent: Mapping[int, int] = field(default_factory=dict)
    outdated: Mapping[int, int] = field(default_factory=dict)
    # Distinct keys: a bot that is outdated on three channels counts once.
    outdated_count: int = 0
    recent_count: int = 0


def get_bot_activity(
    workspace: Workspace | int, now: datetime | None = None, *, using: str = DEFAULT_DB_ALIAS
) -> BotActivity:
    now = now or timezone.now()
    fetches = list_bot_fetches(workspace, now - OUTDATED_WINDOW, now - ACTIVE_WINDOW, using)
    recent = group_keys_by_prompt(fetch for fetch in fetches if fetch.is_recent)
    outdated = group_keys_by_prompt(fetch for fetch in fetches if fetch.is_outdated)
    return BotActivity(
        {prompt: len(keys) for prompt, keys in recent.items()},
        {prompt: len(keys) for prompt, keys in outdated.items()},
        len(set().union(*outdated.values())),
        len(set().union(*recent.values())),
    )


def list_bot_fetches(
    workspace: Workspace | int, since: datetime, recent_since: datetime, using: str = DEFAULT_DB_ALIAS
) -> list[BotFetch]:
    """List the last fetches that are recent or outdated, without those of revoked or expired keys."""
    workspace_id = workspace if isinstance(workspace, int) else workspace.pk
    args = (workspace_id, since, recent_since, timezone.now())
    # The compiled query runs on the primary database only.
    fetch_rows: Iterable[FetchRow] = (
        query_bot_fetches(*args) if using == DEFAULT_DB_ALIAS else build_bot_fetch_query(*args).using(using)
    )
    return [
        BotFetch(key, prompt, at >= recent_since, newest != current)
        for key, prompt, newest, current, at in fetch_rows
    ]


def build_bot_fetch_query(
    workspace: int, since: datetime, recent_since: datetime, now: datetime
) -> "QuerySet[LedgerEntry, FetchRow]":
    keys = ApiKey.objects.in_workspace(workspace).filter(revoked_at=None, expires_at__gt=now)
    rows = LedgerEntry.objects.in_workspace(workspace).filter(
        Q(at__gte=recent_since) | Q(prompt__in=list_moved_prompt_ids(workspace, since)),
        at__gte=since,
        key__in=keys.values("pk"),
        prompt__is_live=True,
    )
    rows = annotate_current_label(rows.order_by())
    # For each key, prompt and label only the newest fetch counts. It is outdated unless it returned the
    # current version.
    grouped = rows.values("key_id", "prompt_id", "label").annotate(
        newest=Max("pk"), newest_current=Max("pk", filter=CURRENT_VERSION_CONDITION), last_at=Max("at")
    )
    is_outdated = Q(newest_current=None) | Q(newest__gt=F("newest_current"))
    relevant = grouped.filter(is_outdated | Q(last_at__gte=recent_since))
    fetch_rows: QuerySet[LedgerEntry, FetchRow] = relevant.values_list(
        "key_id", "prompt_id", "newest", "newest_current", "last_at"
    )
    return fetch_rows


query_bot_fetches = CompiledQuery(build_bot_fetch_query)


def list_moved_prompt_ids(workspace: Workspace | int, since: datetime) -> QuerySet[AgentPrompt, int]:
    """List the ids of prompts with a new version or a moved label since `since`.

    Only bots that fetch one of these prompts can be outdated.
    """
    rows = AgentPrompt.objects.in_workspace(workspace)
    moved = rows.filter(Q(labels__moved_at__gte=since) | Q(latest__created_at__gte=since))
    return moved.values_list("pk", flat=True)


def group_keys_by_prompt(fetches: Iterable[BotFetch]) -> dict[int, set[int]]:
    keys_by_prompt: dict[int, set[int]] = defaultdict(set)
    for fetch in fetches:
        keys_by_prompt[fetch.prompt_id].add(fetch.key_id)
    return keys_by_prompt


CHART_HOURS = 24
# In units of the SVG view box, which pages scale.
BAR_STEP, CHART_HEIGHT, BAR_GAP = 10, 40, 2


@dataclass(frozen=True)
class HourBar:
    """The bar of one hour: start of the hour, number of fetches, and position in the chart."""

    started_at: datetime
    count: int
    x: int
    y: float
    height: float

    @cached_property
    def hour(self) -> str:
        return time_format(self.started_at, "H:i")


@dataclass(frozen=True)
class HourlyChart:
    """A bar chart of the last 24 hours, oldest first."""

    bars: Sequence[HourBar]
    width: int = CHART_HOURS * BAR_STEP
    height: int = CHART_HEIGHT
    bar_width: int = BAR_STEP - BAR_GAP

    @property
    def total(self) -> int:
        return sum(bar.count for bar in self.bars)

    @property
    def busiest(self) -> HourBar:
        return max(self.bars, key=lambda bar: bar.count)

    @property
    def first(self) -> HourBar:
        return self.bars[0]

    @property
    def last(self) -> HourBar:
        return self.bars[-1]


def get_hourly_chart(
    workspace: Workspace | int, now: datetime | None = None, *, using: str = DEFAULT_DB_ALIAS
) -> HourlyChart:
    """Count fetches per full hour in the user's timezone, including the current hour."""
    current = timezone.localtime(now or timezone.now()).replace(minute=0, second=0, microsecond=0)
    hours = [
        current.astimezone(UTC) - timedelta(hours=hours_ago) for hours_ago in reversed(range(CHART_HOURS))
    ]
    rows = LedgerEntry.objects.in_workspace(workspace).using(using).filter(at__gte=hours[0]).order_by()
    # Only the timestamp is selected, so that an index-only scan is possible.
    counted = rows.annotate(hour=TruncHour("at")).values_list("hour").annotate(count=Count("*"))
    counts = {hour.timestamp(): count for hour, count in counted if hour is not None}
    return HourlyChart(build_hour_bars([(hour, counts.get(hour.timestamp(), 0)) for hour in hours]))


def build_hour_bars(counts: Sequence[tuple[datetime, int]]) -> list[HourBar]:
    """Scale the bars to the highest count; a count above zero gets a visible minimum height."""
    highest = max(count for _, count in counts) or 1
    bars = []
    for position, (started_at, count) in enumerate(counts):
        height = round(max(CHART_HEIGHT * count / highest, 1.5), 1) if count else 0.0
        bars.append(
            HourBar(
                timezone.localtime(started_at),
                count,
                position * BAR_STEP,
                round(CHART_HEIGHT - height, 1),
                height,
            )
        )
    return bars

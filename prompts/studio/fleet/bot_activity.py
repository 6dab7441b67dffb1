"""Bot activity from the ledger: recently active bots, outdated bots, and fetches per hour.

A bot is an API key. It is outdated if a fetch would now return a different version.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Count, DateTimeField, Func, QuerySet, Value
from django.db.models.functions import TruncHour
from django.utils import timezone
from django.utils.formats import time_format

from personas.models import Workspace
from prompts.evidence.ledger.outdated_bots import find_outdated_rows, list_active_fetches
from prompts.models import LedgerEntry

ACTIVE_WINDOW, OUTDATED_WINDOW = timedelta(hours=1), timedelta(hours=24)


# Ids of an API key and a prompt.
BotPrompt = tuple[int, int]


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
    """Count the bots that were active and those that are outdated, without revoked and expired keys."""
    now = now or timezone.now()
    recent = group_keys_by_prompt(list_recent_fetches(workspace, now - ACTIVE_WINDOW, using))
    outdated_rows = find_outdated_rows(workspace, now - OUTDATED_WINDOW, using)
    outdated = group_keys_by_prompt((key, prompt) for _, key, prompt, _ in outdated_rows)
    return BotActivity(
        {prompt: len(keys) for prompt, keys in recent.items()},
        {prompt: len(keys) for prompt, keys in outdated.items()},
        len(set().union(*outdated.values())),
        len(set().union(*recent.values())),
    )


def list_recent_fetches(
    workspace: Workspace | int, since: datetime, using: str
) -> "QuerySet[Any, BotPrompt]":
    rows = list_active_fetches(workspace, since, timezone.now()).using(using)
    fetches: QuerySet[Any, BotPrompt] = rows.values_list("key_id", "prompt_id").distinct()
    return fetches


def group_keys_by_prompt(fetches: Iterable[BotPrompt]) -> dict[int, set[int]]:
    keys_by_prompt: dict[int, set[int]] = defaultdict(set)
    for key_id, prompt_id in fetches:
        keys_by_prompt[prompt_id].add(key_id)
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


class HourBin(Func):
    """The start of the hour that contains a time. Hours are counted from the second argument.

    `date_bin` adds a multiple of an hour to it, which takes half as long as to round each time in a timezone.
    """

    function = "date_bin"
    template = "%(function)s('1 hour', %(expressions)s)"
    output_field = DateTimeField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        truncated = TruncHour(self.source_expressions[0], output_field=DateTimeField())
        return compiler.compile(truncated.resolve_expression(compiler.query))


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
    counted = (
        rows.annotate(hour=HourBin("at", Value(hours[0]))).values_list("hour").annotate(count=Count("*"))
    )
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

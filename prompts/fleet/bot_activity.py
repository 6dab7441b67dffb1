"""Which bots came lately and for what, and which of them hold something else than they would get now."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Count, F, FilteredRelation, Max, Q, QuerySet
from django.db.models.functions import TruncHour
from django.utils import timezone
from django.utils.formats import time_format

from personas.models import ApiKey, Workspace
from prompts.models import LATEST, AgentPrompt, LedgerEntry

ACTIVE_WINDOW, OUTDATED_WINDOW = timedelta(hours=1), timedelta(hours=24)
# No label points at "latest": that is the newest version there is.
CURRENT_VERSION_CONDITION = Q(label=LATEST, version=F("prompt__latest")) | (
    ~Q(label=LATEST) & Q(version=F("pointer__version"))
)


class BotFetch(NamedTuple):
    """A key that came for a prompt lately, or holds something else of it than it would get now."""

    key: int
    prompt: int
    is_lately: bool
    is_behind: bool


@dataclass(frozen=True)
class BotActivity:
    """By prompt: how many came within the last hour, and how many of the last day are behind."""

    lately: Mapping[int, int] = field(default_factory=dict)
    behind: Mapping[int, int] = field(default_factory=dict)
    # Keys, not prompts: one bot that is behind on three channels is one bot.
    stale_count: int = 0
    lately_count: int = 0


def get_bot_activity(
    workspace: Workspace | int, now: datetime | None = None, *, using: str = DEFAULT_DB_ALIAS
) -> BotActivity:
    now = now or timezone.now()
    fetches = list_bot_fetches(workspace, now - OUTDATED_WINDOW, now - ACTIVE_WINDOW, using)
    lately = group_keys_by_prompt(one for one in fetches if one.is_lately)
    behind = group_keys_by_prompt(one for one in fetches if one.is_behind)
    return BotActivity(
        {prompt: len(keys) for prompt, keys in lately.items()},
        {prompt: len(keys) for prompt, keys in behind.items()},
        len(set().union(*behind.values())),
        len(set().union(*lately.values())),
    )


def list_bot_fetches(
    workspace: Workspace | int, since: datetime, lately: datetime, using: str = DEFAULT_DB_ALIAS
) -> list[BotFetch]:
    """Judged by the database, which hands over only those that matter; keys that have ended do not count."""
    keys = ApiKey.objects.in_workspace(workspace).filter(revoked_at=None, expires_at__gt=timezone.now())
    rows = (
        LedgerEntry.objects.in_workspace(workspace)
        .using(using)
        .filter(
            Q(at__gte=lately) | Q(prompt__in=list_moved_prompt_ids(workspace, since)),
            at__gte=since,
            key__in=keys.values("pk"),
            prompt__is_live=True,
        )
    )
    # Those who asked for the past hold what they asked for.
    rows = rows.exclude(label__contains="@").order_by()
    # A join, not a look-up: the database would do that for every row, and there may be many.
    rows = rows.annotate(
        pointer=FilteredRelation("prompt__labels", condition=Q(prompt__labels__name=F("label")))
    )
    # Per key, prompt and label the newest decides: it is what they would get now, or they are behind.
    grouped = rows.values("key_id", "prompt_id", "label").annotate(
        newest=Max("pk"), newest_current=Max("pk", filter=CURRENT_VERSION_CONDITION), last_at=Max("at")
    )
    behind = Q(newest_current=None) | Q(newest__gt=F("newest_current"))
    told = grouped.filter(behind | Q(last_at__gte=lately))
    said = told.values_list("key_id", "prompt_id", "newest", "newest_current", "last_at")
    return [
        BotFetch(key, prompt, at >= lately, newest != current) for key, prompt, newest, current, at in said
    ]


def list_moved_prompt_ids(workspace: Workspace | int, since: datetime) -> QuerySet[AgentPrompt, int]:
    """Where a label has stood still, whoever fetched by it holds what it points at; that is most of them."""
    rows = AgentPrompt.objects.in_workspace(workspace)
    moved = rows.filter(Q(labels__moved_at__gte=since) | Q(latest__created_at__gte=since))
    return moved.values_list("pk", flat=True)


def group_keys_by_prompt(fetches: Iterable[BotFetch]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = defaultdict(set)
    for one in fetches:
        found[one.prompt].add(one.key)
    return found


CHART_HOURS = 24
# The drawing's own units; a page may give it any size.
BAR_STEP, CHART_HEIGHT, BAR_GAP = 10, 40, 2


@dataclass(frozen=True)
class HourBar:
    """One hour: when it began, how much was served, and where its bar stands."""

    begun_at: datetime
    count: int
    x: int
    y: float
    height: float

    @property
    def hour(self) -> str:
        return time_format(self.begun_at, "H:i")


@dataclass(frozen=True)
class HourlyChart:
    """The bars of a day, the oldest first."""

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
    """Whole hours of the reader's own clock, the current one included."""
    current = timezone.localtime(now or timezone.now()).replace(minute=0, second=0, microsecond=0)
    hours = [current.astimezone(UTC) - timedelta(hours=back) for back in reversed(range(CHART_HOURS))]
    rows = LedgerEntry.objects.in_workspace(workspace).using(using).filter(at__gte=hours[0]).order_by()
    # Of the rows nothing but their time is asked for, so that the index by time answers alone.
    counted = rows.annotate(hour=TruncHour("at")).values_list("hour").annotate(count=Count("*"))
    counts = {hour.timestamp(): count for hour, count in counted if hour is not None}
    return HourlyChart(build_hour_bars([(hour, counts.get(hour.timestamp(), 0)) for hour in hours]))


def build_hour_bars(counts: Sequence[tuple[datetime, int]]) -> list[HourBar]:
    """The highest fills the drawing; what is not nothing is seen."""
    highest = max(count for _, count in counts) or 1
    bars = []
    for place, (begun_at, count) in enumerate(counts):
        height = round(max(CHART_HEIGHT * count / highest, 1.5), 1) if count else 0.0
        bars.append(
            HourBar(
                timezone.localtime(begun_at), count, place * BAR_STEP, round(CHART_HEIGHT - height, 1), height
            )
        )
    return bars

"""How many prompts were served in each of the last 24 hours, and the bars that show it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Count
from django.db.models.functions import TruncHour
from django.utils import timezone
from django.utils.formats import time_format

from personas.models import Workspace
from prompts.models import LedgerEntry

HOURS = 24
# The drawing's own units; a page may give it any size.
STEP, HEIGHT, GAP = 10, 40, 2


@dataclass(frozen=True)
class Bar:
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
class Chart:
    """The bars of a day, the oldest first."""

    bars: Sequence[Bar]
    width: int = HOURS * STEP
    height: int = HEIGHT
    bar_width: int = STEP - GAP

    @property
    def total(self) -> int:
        return sum(bar.count for bar in self.bars)

    @property
    def busiest(self) -> Bar:
        return max(self.bars, key=lambda bar: bar.count)

    @property
    def first(self) -> Bar:
        return self.bars[0]

    @property
    def last(self) -> Bar:
        return self.bars[-1]


def served_per_hour(
    workspace: Workspace | int, now: datetime | None = None, *, using: str = DEFAULT_DB_ALIAS
) -> Chart:
    """Whole hours of the reader's own clock, the current one included."""
    current = timezone.localtime(now or timezone.now()).replace(minute=0, second=0, microsecond=0)
    hours = [current.astimezone(UTC) - timedelta(hours=back) for back in reversed(range(HOURS))]
    rows = LedgerEntry.objects.in_workspace(workspace).using(using).filter(at__gte=hours[0]).order_by()
    # Of the rows nothing but their time is asked for, so that the index by time answers alone.
    counted = rows.annotate(hour=TruncHour("at")).values_list("hour").annotate(count=Count("*"))
    counts = {hour.timestamp(): count for hour, count in counted if hour is not None}
    return Chart(drawn([(hour, counts.get(hour.timestamp(), 0)) for hour in hours]))


def drawn(counts: Sequence[tuple[datetime, int]]) -> list[Bar]:
    """The highest fills the drawing; what is not nothing is seen."""
    highest = max(count for _, count in counts) or 1
    bars = []
    for place, (begun_at, count) in enumerate(counts):
        height = round(max(HEIGHT * count / highest, 1.5), 1) if count else 0.0
        bars.append(Bar(timezone.localtime(begun_at), count, place * STEP, round(HEIGHT - height, 1), height))
    return bars

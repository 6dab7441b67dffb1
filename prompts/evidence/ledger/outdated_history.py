"""How many bots were outdated at the end of each day, computed from the ledger and the label moves."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Max
from django.db.models.functions import TruncDate
from django.utils import timezone

from personas.models import Workspace
from prompts.evidence.ledger.outdated_bots import (
    LOOKBACK,
    MAX_IDS_PER_QUERY,
    PromptLabelKey,
    list_active_fetches,
)
from prompts.models import LATEST, LabelMove, LedgerEntry, PromptVersion

HISTORY_DAYS = 14


@dataclass(frozen=True)
class OutdatedHistory:
    """The number of outdated bots at the end of each day, the current day last."""

    days: Sequence[date]
    counts: Sequence[int]

    @property
    def highest(self) -> int:
        return max(self.counts, default=0)


@dataclass(frozen=True)
class DailyFetch:
    """The last fetch of a key, prompt and label on a day."""

    day: date
    prompt_id: int
    label: str
    version_id: int


class LabelPositions:
    """The versions that labels pointed to at any time; `latest` is the newest version."""

    def __init__(self, moves: Iterable[tuple[int, str, datetime, int | None]]) -> None:
        self.times: dict[PromptLabelKey, list[datetime]] = defaultdict(list)
        self.versions: dict[PromptLabelKey, list[int | None]] = defaultdict(list)
        for prompt, label, at, version in moves:
            self.times[prompt, label].append(at)
            self.versions[prompt, label].append(version)

    def find(self, prompt_id: int, label: str, at: datetime) -> int | None:
        index = bisect_right(self.times[prompt_id, label], at)
        return self.versions[prompt_id, label][index - 1] if index else None


def count_outdated_by_day(
    workspace: Workspace, *, now: datetime | None = None, using: str = DEFAULT_DB_ALIAS
) -> OutdatedHistory:
    """Count the outdated bots at the end of each of the last HISTORY_DAYS days, in the current time zone.

    As in the list of outdated bots, only active keys count that have fetched within LOOKBACK.
    """
    now = now or timezone.now()
    today = timezone.localdate(now)
    days = [today - timedelta(days=ago) for ago in reversed(range(HISTORY_DAYS))]
    bots = list_daily_fetches(workspace, now, using)
    positions = load_label_positions(workspace, {bot[0].prompt_id for bot in bots}, using)
    return OutdatedHistory(days, [count_outdated(bots, positions, day, now) for day in days])


def count_outdated(
    bots: Collection[Sequence[DailyFetch]], positions: LabelPositions, day: date, now: datetime
) -> int:
    end = min(now, timezone.make_aware(datetime.combine(day + timedelta(days=1), datetime.min.time())))
    last = [fetches[-1] for bot in bots if (fetches := [one for one in bot if one.day <= day])]
    return sum(positions.find(one.prompt_id, one.label, end) != one.version_id for one in last)


def list_daily_fetches(workspace: Workspace, now: datetime, using: str) -> list[list[DailyFetch]]:
    """Return the last fetch of each day, by bot: the same key, prompt and label."""
    rows = list_active_fetches(workspace.pk, now - LOOKBACK, now).using(using)
    grouped = rows.annotate(day=TruncDate("at")).values("key_id", "prompt_id", "label", "day")
    last = list(
        grouped.annotate(newest=Max("pk")).values_list("newest", "key_id", "prompt_id", "label", "day")
    )
    versions = load_fetched_versions(workspace, [row[0] for row in last], using)
    bots: dict[tuple[int | None, int, str], list[DailyFetch]] = defaultdict(list)
    for pk, key, prompt, label, day in sorted(last, key=lambda row: row[4]):
        bots[key, prompt, label].append(DailyFetch(day, prompt, label, versions[pk]))
    return list(bots.values())


def load_fetched_versions(workspace: Workspace, ids: Sequence[int], using: str) -> dict[int, int]:
    """Return the version of each ledger row."""
    entries = LedgerEntry.objects.in_workspace(workspace).using(using)
    return {
        pk: version
        for start in range(0, len(ids), MAX_IDS_PER_QUERY)
        for pk, version in entries.filter(pk__in=ids[start : start + MAX_IDS_PER_QUERY]).values_list(
            "pk", "version_id"
        )
    }


def load_label_positions(workspace: Workspace, prompts: Collection[int], using: str) -> LabelPositions:
    moves = LabelMove.objects.in_workspace(workspace).using(using).filter(prompt__in=prompts)
    versions = PromptVersion.objects.in_workspace(workspace).using(using).filter(prompt__in=prompts)
    moved = moves.order_by("at", "sequence").values_list("prompt_id", "label", "at", "version_id")
    built = versions.order_by("created_at", "number").values_list("prompt_id", "created_at", "pk")
    return LabelPositions([*moved, *((prompt, LATEST, at, pk) for prompt, at, pk in built)])

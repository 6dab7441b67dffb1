"""Fetches per agent and day from the ledger, for charts."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db.models import Count
from django.db.models.functions import TruncDate
from django.utils import timezone

from personas.models import Workspace
from prompts.models import AgentPrompt, LedgerEntry

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

"""Which bots have fetched an agent's prompts of late, channel by channel."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Max
from django.utils import timezone

from personas.models import Agent
from prompts.models import LedgerEntry

LATELY = timedelta(days=1)
SHOWN = 5


@dataclass(frozen=True)
class Reader:
    """A key or person that fetched a prompt: how often, and when last."""

    label: str
    count: int
    last_at: datetime


@dataclass(frozen=True)
class Readers:
    """All who fetched one prompt of late; the first few by name."""

    shown: Sequence[Reader] = ()
    total: int = 0

    @property
    def more(self) -> int:
        return self.total - len(self.shown)


def readers_of(agent: Agent, prompt_ids: Sequence[int]) -> dict[int, Readers]:
    """By prompt, those who came last first; one query."""
    rows = LedgerEntry.objects.in_workspace(agent.workspace_id).filter(
        prompt__in=list(prompt_ids), at__gte=timezone.now() - LATELY
    )
    counted = (
        rows.order_by().values("prompt_id", "reader_label").annotate(count=Count("pk"), last_at=Max("at"))
    )
    found: dict[int, list[Reader]] = defaultdict(list)
    for row in counted.order_by("-last_at"):
        found[row["prompt_id"]].append(Reader(row["reader_label"], row["count"], row["last_at"]))
    return {prompt: Readers(readers[:SHOWN], len(readers)) for prompt, readers in found.items()}

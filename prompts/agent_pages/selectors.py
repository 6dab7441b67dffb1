"""One agent on each of its channels at a glance: what bots get, what waits, and when it was last fetched."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from django.db.models import F, FilteredRelation, OuterRef, Q, Subquery

from personas.models import Agent, AgentChannel
from prompts.models import PRODUCTION, LedgerEntry, PromptLabel


@dataclass(frozen=True)
class Line:
    """A channel of an agent; without a prompt, nothing was built for it yet."""

    channel_id: int
    channel_slug: str
    channel_name: str
    prompt_id: int | None
    problem: str | None
    is_held: bool | None
    latest: int | None
    latest_tokens: int | None
    latest_at: datetime | None
    production_id: int | None
    production: int | None
    production_tokens: int | None
    production_at: datetime | None
    fetched_at: datetime | None

    @property
    def is_behind(self) -> bool:
        return self.latest is not None and self.latest != self.production


def lines_of(agent: Agent) -> list[Line]:
    """Every channel it speaks on, in its own order; one query."""
    rows = AgentChannel.objects.in_workspace(agent.workspace_id).filter(
        agent=agent, channel__archived_at=None
    )
    rows = rows.annotate(
        line=FilteredRelation("channel__prompts", condition=Q(channel__prompts__agent=agent.pk))
    )
    labels = PromptLabel.objects.in_workspace(agent.workspace_id).filter(
        prompt=OuterRef("line__pk"), name=PRODUCTION
    )
    fetches = LedgerEntry.objects.in_workspace(agent.workspace_id).filter(prompt=OuterRef("line__pk"))
    columns = {
        "production_id": Subquery(labels.values("version_id")[:1]),
        "production": Subquery(labels.values("version__number")[:1]),
        "production_tokens": Subquery(labels.values("version__tokens")[:1]),
        "production_at": Subquery(labels.values("moved_at")[:1]),
        "fetched_at": Subquery(fetches.order_by("-at").values("at")[:1]),
    }
    plain = {
        "channel_slug": F("channel__slug"),
        "channel_name": F("channel__name"),
        "prompt_id": F("line__pk"),
        "problem": F("line__problem"),
        "is_held": F("line__is_held"),
        "latest": F("line__latest__number"),
        "latest_tokens": F("line__latest__tokens"),
        "latest_at": F("line__latest__created_at"),
    }
    found = rows.order_by("position", "pk").values("channel_id", **plain, **columns)
    return [Line(**row) for row in cast("Iterable[dict[str, Any]]", found)]


@dataclass(frozen=True)
class Card:
    """The figures at the top of an agent's pages."""

    lines: Sequence[Line]
    changed_at: datetime
    fetched_at: datetime | None
    # The smallest and the largest prompt in production; none while nothing is.
    fewest: int | None
    most: int | None

    @property
    def problems(self) -> list[Line]:
        return [line for line in self.lines if line.problem]


def card_of(agent: Agent, lines: Sequence[Line]) -> Card:
    tokens = [line.production_tokens for line in lines if line.production_tokens is not None]
    fetched = [line.fetched_at for line in lines if line.fetched_at is not None]
    changed = [line.latest_at for line in lines if line.latest_at is not None]
    return Card(
        lines,
        max([agent.updated_at, *changed]),
        max(fetched, default=None),
        min(tokens, default=None),
        max(tokens, default=None),
    )

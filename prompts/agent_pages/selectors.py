"""One agent on each of its channels at a glance: what bots get, what waits, and when it was last fetched."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any, cast

from django.db.models import Count, F, FilteredRelation, Max, OuterRef, Q, Subquery
from django.utils import timezone

from personas.models import Agent, AgentChannel
from prompts.models import PRODUCTION, LedgerEntry, PromptLabel, VersionPart


@dataclass(frozen=True)
class ChannelStatus:
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


def list_channel_statuses(agent: Agent) -> list[ChannelStatus]:
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
    return [ChannelStatus(**row) for row in cast("Iterable[dict[str, Any]]", found)]


@dataclass(frozen=True)
class AgentSummary:
    """The figures at the top of an agent's pages."""

    lines: Sequence[ChannelStatus]
    changed_at: datetime
    fetched_at: datetime | None
    # The smallest and the largest prompt in production; none while nothing is.
    fewest: int | None
    most: int | None

    @property
    def problems(self) -> list[ChannelStatus]:
        return [line for line in self.lines if line.problem]


def build_agent_summary(agent: Agent, lines: Sequence[ChannelStatus]) -> AgentSummary:
    tokens = [line.production_tokens for line in lines if line.production_tokens is not None]
    fetched = [line.fetched_at for line in lines if line.fetched_at is not None]
    changed = [line.latest_at for line in lines if line.latest_at is not None]
    return AgentSummary(
        lines,
        max([agent.updated_at, *changed]),
        max(fetched, default=None),
        min(tokens, default=None),
        max(tokens, default=None),
    )


READER_WINDOW = timedelta(days=1)
MAX_SHOWN_READERS = 5


@dataclass(frozen=True)
class PromptReader:
    """A key or person that fetched a prompt: how often, and when last."""

    label: str
    count: int
    last_at: datetime


@dataclass(frozen=True)
class ReaderSummary:
    """All who fetched one prompt of late; the first few by name."""

    shown: Sequence[PromptReader] = ()
    total: int = 0

    @property
    def more(self) -> int:
        return self.total - len(self.shown)


def get_recent_readers(agent: Agent, prompt_ids: Sequence[int]) -> dict[int, ReaderSummary]:
    """By prompt, those who came last first; one query."""
    rows = LedgerEntry.objects.in_workspace(agent.workspace_id).filter(
        prompt__in=list(prompt_ids), at__gte=timezone.now() - READER_WINDOW
    )
    counted = (
        rows.order_by().values("prompt_id", "reader_label").annotate(count=Count("pk"), last_at=Max("at"))
    )
    found: dict[int, list[PromptReader]] = defaultdict(list)
    for row in counted.order_by("-last_at"):
        found[row["prompt_id"]].append(PromptReader(row["reader_label"], row["count"], row["last_at"]))
    return {
        prompt: ReaderSummary(readers[:MAX_SHOWN_READERS], len(readers)) for prompt, readers in found.items()
    }


# Kind and id.
KindAndId = tuple[str, int]


def get_production_channels(
    agent: Agent, parts: Iterable[KindAndId], lines: Sequence[ChannelStatus]
) -> dict[KindAndId, list[str]]:
    """By kind and id, the channels on whose production version it stands; one query."""
    served = {line.prompt_id: line for line in lines if line.prompt_id and line.production_id}
    wanted: dict[str, list[int]] = defaultdict(list)
    for kind, key in parts:
        wanted[kind].append(key)
    if not served or not wanted:
        return {}
    named = reduce(or_, [Q(kind=kind, object_id__in=keys) for kind, keys in wanted.items()])
    rows = VersionPart.objects.in_workspace(agent.workspace_id).filter(named, prompt__in=list(served))
    held: dict[tuple[KindAndId, int], bool] = {}
    # Only changes are kept: the last one up to the version in production says whether it holds the part.
    for kind, key, prompt, version, revision in rows.order_by("version_id").values_list(
        "kind", "object_id", "prompt_id", "version_id", "revision"
    ):
        if version <= (served[prompt].production_id or 0):
            held[(kind, key), prompt] = revision is not None
    found: dict[KindAndId, list[str]] = defaultdict(list)
    for line in served.values():
        for part in [
            part for (part, prompt), is_held in held.items() if is_held and prompt == line.prompt_id
        ]:
            found[part].append(line.channel_name)
    return dict(found)

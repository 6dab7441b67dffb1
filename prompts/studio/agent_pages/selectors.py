"""The status of an agent's channels: production and latest version, last fetch, recent readers."""

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
    """A channel of an agent; `prompt_id` is None before the first build."""

    channel_id: int
    channel_slug: str
    channel_name: str
    prompt_id: int | None
    problem: str | None
    is_pinned: bool | None
    latest: int | None
    latest_tokens: int | None
    latest_at: datetime | None
    production_id: int | None
    production: int | None
    production_tokens: int | None
    production_at: datetime | None
    fetched_at: datetime | None

    @property
    def is_unreleased(self) -> bool:
        return self.latest is not None and self.latest != self.production


def list_channel_statuses(agent: Agent) -> list[ChannelStatus]:
    """List the channels of the agent in the order set on the agent, with one query."""
    rows = AgentChannel.objects.in_workspace(agent.workspace_id).filter(
        agent=agent, channel__archived_at=None
    )
    rows = rows.annotate(
        agent_prompt=FilteredRelation("channel__prompts", condition=Q(channel__prompts__agent=agent.pk))
    )
    labels = PromptLabel.objects.in_workspace(agent.workspace_id).filter(
        prompt=OuterRef("agent_prompt__pk"), name=PRODUCTION
    )
    fetches = LedgerEntry.objects.in_workspace(agent.workspace_id).filter(prompt=OuterRef("agent_prompt__pk"))
    subqueries = {
        "production_id": Subquery(labels.values("version_id")[:1]),
        "production": Subquery(labels.values("version__number")[:1]),
        "production_tokens": Subquery(labels.values("version__tokens")[:1]),
        "production_at": Subquery(labels.values("moved_at")[:1]),
        "fetched_at": Subquery(fetches.order_by("-at").values("at")[:1]),
    }
    columns = {
        "channel_slug": F("channel__slug"),
        "channel_name": F("channel__name"),
        "prompt_id": F("agent_prompt__pk"),
        "problem": F("agent_prompt__problem"),
        "is_pinned": F("agent_prompt__is_pinned"),
        "latest": F("agent_prompt__latest__number"),
        "latest_tokens": F("agent_prompt__latest__tokens"),
        "latest_at": F("agent_prompt__latest__created_at"),
    }
    values = rows.order_by("position", "pk").values("channel_id", **columns, **subqueries)
    return [ChannelStatus(**row) for row in cast("Iterable[dict[str, Any]]", values)]


@dataclass(frozen=True)
class AgentSummary:
    """The numbers in the header of the agent pages."""

    statuses: Sequence[ChannelStatus]
    changed_at: datetime
    fetched_at: datetime | None
    # Smallest and largest prompt in production; None if nothing is in production.
    min_tokens: int | None
    max_tokens: int | None

    @property
    def problems(self) -> list[ChannelStatus]:
        return [status for status in self.statuses if status.problem]


def build_agent_summary(agent: Agent, statuses: Sequence[ChannelStatus]) -> AgentSummary:
    tokens = [status.production_tokens for status in statuses if status.production_tokens is not None]
    fetched = [status.fetched_at for status in statuses if status.fetched_at is not None]
    changed = [status.latest_at for status in statuses if status.latest_at is not None]
    return AgentSummary(
        statuses,
        max([agent.updated_at, *changed]),
        max(fetched, default=None),
        min(tokens, default=None),
        max(tokens, default=None),
    )


READER_WINDOW = timedelta(days=1)
MAX_SHOWN_READERS = 5


@dataclass(frozen=True)
class PromptReader:
    """A key or member that fetched a prompt: how often, and when last."""

    label: str
    count: int
    last_at: datetime


@dataclass(frozen=True)
class ReaderSummary:
    """The recent readers of one prompt: the first few, and the total number."""

    readers: Sequence[PromptReader] = ()
    total: int = 0

    @property
    def hidden_count(self) -> int:
        return self.total - len(self.readers)


def get_recent_readers(agent: Agent, prompt_ids: Sequence[int]) -> dict[int, ReaderSummary]:
    """Return the readers of each prompt, most recent first, with one query."""
    rows = LedgerEntry.objects.in_workspace(agent.workspace_id).filter(
        prompt__in=list(prompt_ids), at__gte=timezone.now() - READER_WINDOW
    )
    counted = (
        rows.order_by().values("prompt_id", "reader_label").annotate(count=Count("pk"), last_at=Max("at"))
    )
    readers_by_prompt: dict[int, list[PromptReader]] = defaultdict(list)
    for row in counted.order_by("-last_at", "reader_label"):
        readers_by_prompt[row["prompt_id"]].append(
            PromptReader(row["reader_label"], row["count"], row["last_at"])
        )
    return {
        prompt: ReaderSummary(readers[:MAX_SHOWN_READERS], len(readers))
        for prompt, readers in readers_by_prompt.items()
    }


KindAndId = tuple[str, int]


def get_production_channels(
    agent: Agent, parts: Iterable[KindAndId], statuses: Sequence[ChannelStatus]
) -> dict[KindAndId, list[str]]:
    """Map each part to the channels whose production version contains it, with one query."""
    served = {status.prompt_id: status for status in statuses if status.prompt_id and status.production_id}
    keys_by_kind: dict[str, list[int]] = defaultdict(list)
    for kind, key in parts:
        keys_by_kind[kind].append(key)
    if not served or not keys_by_kind:
        return {}
    condition = reduce(or_, [Q(kind=kind, object_id__in=keys) for kind, keys in keys_by_kind.items()])
    rows = VersionPart.objects.in_workspace(agent.workspace_id).filter(condition, prompt__in=list(served))
    contains_part: dict[tuple[KindAndId, int], bool] = {}
    # A part has rows only for the versions that add, change or remove it. The last one up to the production
    # version tells whether that version contains the part.
    for kind, key, prompt, version, revision in rows.order_by("version_id").values_list(
        "kind", "object_id", "prompt_id", "version_id", "revision"
    ):
        if version <= (served[prompt].production_id or 0):
            contains_part[(kind, key), prompt] = revision is not None
    channels_by_part: dict[KindAndId, list[str]] = defaultdict(list)
    for status in served.values():
        for (part, prompt), is_contained in contains_part.items():
            if is_contained and prompt == status.prompt_id:
                channels_by_part[part].append(status.channel_name)
    return dict(channels_by_part)

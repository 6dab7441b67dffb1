"""What happened to one agent, newest first: changes to what feeds it, versions, labels, releases, fetches."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from django.db.models import Count, F, Max, Q, QuerySet, Value
from django.db.models.fields import BigIntegerField, CharField
from django.db.models.functions import Cast
from django.utils import timezone

from personas.models import Agent, AgentChannel, AgentTool, AuditEvent, Memory, Responsibility
from prompts.models import (
    AgentPrompt,
    LabelMove,
    LedgerEntry,
    PromptSettings,
    PromptVersion,
    ReleaseItem,
    VersionPart,
)
from prompts.provenance.causes import CauseLabel, describe_cause
from prompts.versions.selectors import list_heavy_columns
from skills.models import Skill, SkillLink

ENTRIES_PER_PAGE = 50
FETCH_WINDOW = timedelta(days=1)
MAX_ENTRY_CAUSES = 3
ActivityKind = Literal["change", "release", "version", "label"]
ACTIVITY_KINDS: tuple[ActivityKind, ...] = ("change", "release", "version", "label")
BUILD_REASON = "build"


@dataclass(frozen=True)
class ActivityEntry:
    """One line of the list; exactly one of the three is there."""

    what: ActivityKind
    at: datetime
    event: AuditEvent | None = None
    version: PromptVersion | None = None
    move: LabelMove | None = None
    causes: Sequence[CauseLabel] = field(default_factory=list)


@dataclass(frozen=True)
class ActivityPage:
    """A page of it; whether there is more is known without counting."""

    happenings: Sequence[ActivityEntry]
    number: int
    has_next: bool

    @property
    def has_previous(self) -> bool:
        return self.number > 1


def get_activity_page(agent: Agent, what: str = "", number: int = 1) -> ActivityPage:
    """Four queries, whatever the length."""
    start = (number - 1) * ENTRIES_PER_PAGE
    found = list(query_activity(agent, what)[start : start + ENTRIES_PER_PAGE + 1])
    return ActivityPage(
        load_activity_entries(agent, found[:ENTRIES_PER_PAGE]), number, len(found) > ENTRIES_PER_PAGE
    )


def query_activity(agent: Agent, what: str) -> QuerySet[Any]:
    """Kind, id and moment of everything, in one statement; the details are looked up for one page only."""
    wanted = [what] if what in ACTIVITY_KINDS else ACTIVITY_KINDS
    parts = [query_activity_kind(agent, one) for one in wanted]
    rows: QuerySet[Any] = parts[0].union(*parts[1:], all=True) if len(parts) > 1 else parts[0]
    return rows.order_by("-moment", "-key")


def query_activity_kind(agent: Agent, what: str) -> QuerySet[Any]:
    rows: QuerySet[Any] = ACTIVITY_QUERIES[what](agent).order_by()
    marked: QuerySet[Any] = rows.annotate(
        what=Value(what, output_field=CharField()),
        key=Cast("pk", BigIntegerField()),
        moment=F("created_at" if what == "version" else "at"),
    )
    entries: QuerySet[Any] = marked.values_list("what", "key", "moment")
    return entries


def list_change_events(agent: Agent) -> QuerySet[AuditEvent]:
    """Of the agent itself, of every record that feeds it now, and of the files its prompts have held."""
    workspace = agent.workspace_id
    channels = AgentChannel.objects.in_workspace(workspace).filter(agent=agent).values("channel")
    tools = AgentTool.objects.in_workspace(workspace).filter(agent=agent).values("tool")
    duties = Responsibility.objects.in_workspace(workspace).filter(agent=agent).values("pk")
    memories = Memory.objects.in_workspace(workspace).filter(Q(agent=agent) | Q(agent=None)).values("pk")
    links = SkillLink.objects.in_workspace(workspace).filter(agent=agent).values("skill")
    skills = Skill.objects.in_workspace(workspace).filter(Q(for_all_agents=True) | Q(pk__in=links))
    levels = PromptSettings.objects.in_workspace(workspace).filter(
        Q(agent=agent) | Q(channel__in=channels) | Q(agent=None, channel=None)
    )
    parts = VersionPart.objects.in_workspace(workspace).filter(
        kind="context_file", prompt__in=list_agent_prompt_ids(agent)
    )
    feeding = {
        "agent": [agent.pk],
        "identity": [agent.identity_id],
        "soul": [agent.soul_id],
        "user_profile": [agent.user_profile_id],
        "channel": channels,
        "tool": tools,
        "responsibility": duties,
        "memory": memories,
        "skill": skills.values("pk"),
        "prompt_settings": levels.values("pk"),
        "file": parts.values("object_id"),
    }
    wanted = Q()
    for kind, keys in feeding.items():
        wanted |= Q(kind=kind, object_id__in=keys)
    return AuditEvent.objects.in_workspace(workspace).filter(wanted)


def list_release_events(agent: Agent) -> QuerySet[AuditEvent]:
    """What was done about releases that hold a prompt of the agent."""
    items = ReleaseItem.objects.in_workspace(agent.workspace_id).filter(prompt__agent=agent)
    events = AuditEvent.objects.in_workspace(agent.workspace_id)
    return events.filter(kind="release", object_id__in=items.values("release"))


def list_agent_versions(agent: Agent) -> QuerySet[PromptVersion]:
    return PromptVersion.objects.in_workspace(agent.workspace_id).filter(
        prompt__in=list_agent_prompt_ids(agent)
    )


def list_agent_moves(agent: Agent) -> QuerySet[LabelMove]:
    """By hand or by release; production that follows a build is told by the version."""
    rows = LabelMove.objects.in_workspace(agent.workspace_id).filter(prompt__in=list_agent_prompt_ids(agent))
    return rows.exclude(reason=BUILD_REASON)


def list_agent_prompt_ids(agent: Agent) -> QuerySet[Any]:
    return AgentPrompt.objects.in_workspace(agent.workspace_id).filter(agent=agent).values("pk")


ACTIVITY_QUERIES: dict[str, Any] = {
    "change": list_change_events,
    "release": list_release_events,
    "version": list_agent_versions,
    "label": list_agent_moves,
}


def load_activity_entries(
    agent: Agent, found: Sequence[tuple[ActivityKind, int, datetime]]
) -> list[ActivityEntry]:
    """The rows behind the entries, a query for each table."""
    keys: dict[str, list[int]] = {
        what: [key for one, key, _ in found if one == what] for what in ACTIVITY_KINDS
    }
    events = AuditEvent.objects.in_workspace(agent.workspace_id).defer("before", "after")
    by_event = events.in_bulk([*keys["change"], *keys["release"]])
    light = PromptVersion.objects.in_workspace(agent.workspace_id).defer("segments", "sizes", "lockfile")
    by_version = light.select_related("prompt__channel").in_bulk(keys["version"])
    links = ("prompt__channel", "version", "previous_version", "release")
    rows = LabelMove.objects.in_workspace(agent.workspace_id).select_related(*links)
    by_move = rows.defer(*list_heavy_columns("version"), *list_heavy_columns("previous_version")).in_bulk(
        keys["label"]
    )
    return [
        ActivityEntry(
            what,
            at,
            by_event.get(key) if what in ("change", "release") else None,
            by_version.get(key) if what == "version" else None,
            by_move.get(key) if what == "label" else None,
            list_last_causes(by_version[key]) if what == "version" and key in by_version else [],
        )
        for what, key, at in found
    ]


def list_last_causes(version: PromptVersion) -> list[CauseLabel]:
    """Kinds and revisions alone: their names stand on the version's own page."""
    causes = [describe_cause(cause, {}) for cause in reversed(version.causes)]
    return list(dict.fromkeys(causes))[:MAX_ENTRY_CAUSES]


@dataclass(frozen=True)
class FetchCounts:
    """How often its prompts were handed out within a day, and to how many keys."""

    count: int
    keys: int
    last_at: datetime | None


def get_fetch_counts(
    agent: Agent, prompt_ids: Sequence[int], within: timedelta = FETCH_WINDOW
) -> FetchCounts:
    if not prompt_ids:
        return FetchCounts(0, 0, None)
    rows = LedgerEntry.objects.in_workspace(agent.workspace_id).filter(
        prompt__in=list(prompt_ids), at__gte=timezone.now() - within
    )
    found = rows.aggregate(count=Count("pk"), keys=Count("key", distinct=True), last_at=Max("at"))
    return FetchCounts(**found)

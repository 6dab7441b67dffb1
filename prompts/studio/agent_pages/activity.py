"""The activity of one agent: record changes, versions, label moves and releases, and counts of fetches."""

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
from prompts.publishing.provenance.causes import CauseLabel, describe_cause
from prompts.publishing.versions.selectors import list_heavy_columns
from skills.models import Skill, SkillLink

ENTRIES_PER_PAGE = 50
# Versions of one edit and label moves of one action are grouped if they are at most this far apart.
GROUP_WINDOW = timedelta(minutes=1)
FETCH_WINDOW = timedelta(days=1)
MAX_ENTRY_CAUSES = 3
ActivityKind = Literal["change", "release", "version", "label"]
ACTIVITY_KINDS: tuple[ActivityKind, ...] = ("change", "release", "version", "label")
BUILD_REASON = "build"


@dataclass(frozen=True)
class ActivityEntry:
    """One entry of the list; exactly one of event, version and move is set."""

    kind: ActivityKind
    at: datetime
    event: AuditEvent | None = None
    version: PromptVersion | None = None
    move: LabelMove | None = None
    causes: Sequence[CauseLabel] = field(default_factory=list)

    @property
    def group_key(self) -> object:
        """What entries of several channels have in common if one action made them; None for other entries."""
        if self.version is not None:
            return "version", self.version.author_label, self.version.message, tuple(self.causes)
        if self.move is not None:
            move = self.move
            is_removal = move.version_id is None
            return "move", move.label, move.reason, move.release_id, move.note, move.author_label, is_removal
        return None


@dataclass
class ActivityGroup:
    """Entries of one action: the versions or label moves of several channels, or a single entry."""

    entries: list[ActivityEntry]

    @property
    def first(self) -> ActivityEntry:
        return self.entries[0]

    @property
    def kind(self) -> ActivityKind:
        return self.first.kind


@dataclass(frozen=True)
class ActivityPage:
    """One page of entries. One entry more is loaded to set `has_next` without a COUNT query."""

    entries: Sequence[ActivityEntry]
    number: int
    has_next: bool

    @property
    def has_previous(self) -> bool:
        return self.number > 1


def get_activity_page(agent: Agent, kind: str = "", number: int = 1) -> ActivityPage:
    """Load one page of entries with four queries, independent of the length of the list."""
    start = (number - 1) * ENTRIES_PER_PAGE
    rows = list(query_activity(agent, kind)[start : start + ENTRIES_PER_PAGE + 1])
    return ActivityPage(
        load_activity_entries(agent, rows[:ENTRIES_PER_PAGE]), number, len(rows) > ENTRIES_PER_PAGE
    )


def group_activity(entries: Sequence[ActivityEntry]) -> list[ActivityGroup]:
    """Join versions that one edit created, and label moves of one action, on several channels."""
    groups: list[ActivityGroup] = []
    latest: dict[object, ActivityGroup] = {}
    for entry in entries:
        key = entry.group_key
        group = latest.get(key) if key else None
        if group is not None and group.first.at - entry.at <= GROUP_WINDOW and is_other_prompt(group, entry):
            group.entries.append(entry)
            continue
        groups.append(ActivityGroup([entry]))
        latest[key] = groups[-1]
    return groups


def is_other_prompt(group: ActivityGroup, entry: ActivityEntry) -> bool:
    """Whether the group has no entry of the same prompt: two versions of one prompt are two edits."""
    return get_prompt_id(entry) not in {get_prompt_id(one) for one in group.entries}


def get_prompt_id(entry: ActivityEntry) -> int | None:
    row = entry.version or entry.move
    return row.prompt_id if row else None


def query_activity(agent: Agent, kind: str) -> QuerySet[Any]:
    """Query kind, id and timestamp of all entries with one UNION; details are loaded for one page only."""
    kinds = [kind] if kind in ACTIVITY_KINDS else ACTIVITY_KINDS
    queries = [query_activity_kind(agent, entry_kind) for entry_kind in kinds]
    rows: QuerySet[Any] = queries[0].union(*queries[1:], all=True) if len(queries) > 1 else queries[0]
    return rows.order_by("-occurred_at", "-key")


def query_activity_kind(agent: Agent, kind: str) -> QuerySet[Any]:
    rows: QuerySet[Any] = ACTIVITY_QUERIES[kind](agent).order_by()
    annotated: QuerySet[Any] = rows.annotate(
        entry_kind=Value(kind, output_field=CharField()),
        key=Cast("pk", BigIntegerField()),
        occurred_at=F("created_at" if kind == "version" else "at"),
    )
    entries: QuerySet[Any] = annotated.values_list("entry_kind", "key", "occurred_at")
    return entries


def list_change_events(agent: Agent) -> QuerySet[AuditEvent]:
    """Query audit events of the agent, of records it uses now, and of files its prompts have contained."""
    workspace = agent.workspace_id
    channels = AgentChannel.objects.in_workspace(workspace).filter(agent=agent).values("channel")
    tools = AgentTool.objects.in_workspace(workspace).filter(agent=agent).values("tool")
    responsibilities = Responsibility.objects.in_workspace(workspace).filter(agent=agent).values("pk")
    memories = Memory.objects.in_workspace(workspace).filter(Q(agent=agent) | Q(agent=None)).values("pk")
    links = SkillLink.objects.in_workspace(workspace).filter(agent=agent).values("skill")
    skills = Skill.objects.in_workspace(workspace).filter(Q(for_all_agents=True) | Q(pk__in=links))
    settings = PromptSettings.objects.in_workspace(workspace).filter(
        Q(agent=agent) | Q(agent=None, channel__in=channels) | Q(agent=None, channel=None)
    )
    parts = VersionPart.objects.in_workspace(workspace).filter(
        kind="context_file", prompt__in=list_agent_prompt_ids(agent)
    )
    keys_by_kind = {
        "agent": [agent.pk],
        "identity": [agent.identity_id],
        "soul": [agent.soul_id],
        "user_profile": [agent.user_profile_id],
        "channel": channels,
        "tool": tools,
        "responsibility": responsibilities,
        "memory": memories,
        "skill": skills.values("pk"),
        "prompt_settings": settings.values("pk"),
        "file": parts.values("object_id"),
    }
    condition = Q()
    for kind, keys in keys_by_kind.items():
        condition |= Q(kind=kind, object_id__in=keys)
    return AuditEvent.objects.in_workspace(workspace).filter(condition)


def list_release_events(agent: Agent) -> QuerySet[AuditEvent]:
    """Query audit events of releases that contain a prompt of the agent."""
    items = ReleaseItem.objects.in_workspace(agent.workspace_id).filter(prompt__agent=agent)
    events = AuditEvent.objects.in_workspace(agent.workspace_id)
    return events.filter(kind="release", object_id__in=items.values("release"))


def list_agent_versions(agent: Agent) -> QuerySet[PromptVersion]:
    return PromptVersion.objects.in_workspace(agent.workspace_id).filter(
        prompt__in=list_agent_prompt_ids(agent)
    )


def list_agent_moves(agent: Agent) -> QuerySet[LabelMove]:
    """Query label moves made by a member or a release; a move by a build is covered by its version entry."""
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
    agent: Agent, rows: Sequence[tuple[ActivityKind, int, datetime]]
) -> list[ActivityEntry]:
    """Load the rows of the entries with one query per table."""
    keys: dict[str, list[int]] = {
        kind: [key for row_kind, key, _ in rows if row_kind == kind] for kind in ACTIVITY_KINDS
    }
    events = AuditEvent.objects.in_workspace(agent.workspace_id).defer("before", "after")
    by_event = events.in_bulk([*keys["change"], *keys["release"]])
    versions = PromptVersion.objects.in_workspace(agent.workspace_id).defer("segments", "sizes", "lockfile")
    by_version = versions.select_related("prompt__channel").in_bulk(keys["version"])
    links = ("prompt__channel", "version", "previous_version", "release")
    moves = LabelMove.objects.in_workspace(agent.workspace_id).select_related(*links)
    by_move = moves.defer(*list_heavy_columns("version"), *list_heavy_columns("previous_version")).in_bulk(
        keys["label"]
    )
    return [
        ActivityEntry(
            kind,
            at,
            by_event.get(key) if kind in ("change", "release") else None,
            by_version.get(key) if kind == "version" else None,
            by_move.get(key) if kind == "label" else None,
            list_last_causes(by_version[key]) if kind == "version" and key in by_version else [],
        )
        for kind, key, at in rows
    ]


def list_last_causes(version: PromptVersion) -> list[CauseLabel]:
    """List the last causes of a version, without record names, which would take another query."""
    causes = [describe_cause(cause, {}) for cause in reversed(version.causes)]
    return list(dict.fromkeys(causes))[:MAX_ENTRY_CAUSES]


@dataclass(frozen=True)
class FetchCounts:
    """How often prompts were fetched, by how many keys, and when last."""

    count: int
    keys: int
    last_at: datetime | None


def get_fetch_counts(
    agent: Agent, prompt_ids: Sequence[int], window: timedelta = FETCH_WINDOW
) -> FetchCounts:
    if not prompt_ids:
        return FetchCounts(0, 0, None)
    rows = LedgerEntry.objects.in_workspace(agent.workspace_id).filter(
        prompt__in=list(prompt_ids), at__gte=timezone.now() - window
    )
    counts = rows.aggregate(count=Count("pk"), keys=Count("key", distinct=True), last_at=Max("at"))
    return FetchCounts(**counts)

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
from prompts.ledger.selectors import heavy
from prompts.models import (
    AgentPrompt,
    LabelMove,
    LedgerEntry,
    PromptSettings,
    PromptVersion,
    ReleaseItem,
    VersionPart,
)
from prompts.provenance.causes import Cause, in_words
from skills.models import Skill, SkillLink

PAGE_SIZE = 50
DAY = timedelta(days=1)
SHOWN_CAUSES = 3
What = Literal["change", "release", "version", "label"]
WHATS: tuple[What, ...] = ("change", "release", "version", "label")
BUILD = "build"


@dataclass(frozen=True)
class Happening:
    """One line of the list; exactly one of the three is there."""

    what: What
    at: datetime
    event: AuditEvent | None = None
    version: PromptVersion | None = None
    move: LabelMove | None = None
    causes: Sequence[Cause] = field(default_factory=list)


@dataclass(frozen=True)
class Activity:
    """A page of it; whether there is more is known without counting."""

    happenings: Sequence[Happening]
    number: int
    has_next: bool

    @property
    def has_previous(self) -> bool:
        return self.number > 1


def activity_of(agent: Agent, what: str = "", number: int = 1) -> Activity:
    """Four queries, whatever the length."""
    start = (number - 1) * PAGE_SIZE
    found = list(entries(agent, what)[start : start + PAGE_SIZE + 1])
    return Activity(told(agent, found[:PAGE_SIZE]), number, len(found) > PAGE_SIZE)


def entries(agent: Agent, what: str) -> QuerySet[Any]:
    """Kind, id and moment of everything, in one statement; the details are looked up for one page only."""
    wanted = [what] if what in WHATS else WHATS
    parts = [entries_of(agent, one) for one in wanted]
    rows: QuerySet[Any] = parts[0].union(*parts[1:], all=True) if len(parts) > 1 else parts[0]
    return rows.order_by("-moment", "-key")


def entries_of(agent: Agent, what: str) -> QuerySet[Any]:
    rows: QuerySet[Any] = PARTS[what](agent).order_by()
    marked: QuerySet[Any] = rows.annotate(
        what=Value(what, output_field=CharField()),
        key=Cast("pk", BigIntegerField()),
        moment=F("created_at" if what == "version" else "at"),
    )
    entries: QuerySet[Any] = marked.values_list("what", "key", "moment")
    return entries


def changes(agent: Agent) -> QuerySet[AuditEvent]:
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
    parts = VersionPart.objects.in_workspace(workspace).filter(kind="context_file", prompt__in=prompts(agent))
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


def releases(agent: Agent) -> QuerySet[AuditEvent]:
    """What was done about releases that hold a prompt of the agent."""
    items = ReleaseItem.objects.in_workspace(agent.workspace_id).filter(prompt__agent=agent)
    events = AuditEvent.objects.in_workspace(agent.workspace_id)
    return events.filter(kind="release", object_id__in=items.values("release"))


def versions(agent: Agent) -> QuerySet[PromptVersion]:
    return PromptVersion.objects.in_workspace(agent.workspace_id).filter(prompt__in=prompts(agent))


def moves(agent: Agent) -> QuerySet[LabelMove]:
    """By hand or by release; production that follows a build is told by the version."""
    rows = LabelMove.objects.in_workspace(agent.workspace_id).filter(prompt__in=prompts(agent))
    return rows.exclude(reason=BUILD)


def prompts(agent: Agent) -> QuerySet[Any]:
    return AgentPrompt.objects.in_workspace(agent.workspace_id).filter(agent=agent).values("pk")


PARTS: dict[str, Any] = {"change": changes, "release": releases, "version": versions, "label": moves}


def told(agent: Agent, found: Sequence[tuple[What, int, datetime]]) -> list[Happening]:
    """The rows behind the entries, a query for each table."""
    keys: dict[str, list[int]] = {what: [key for one, key, _ in found if one == what] for what in WHATS}
    events = AuditEvent.objects.in_workspace(agent.workspace_id).defer("before", "after")
    by_event = events.in_bulk([*keys["change"], *keys["release"]])
    light = PromptVersion.objects.in_workspace(agent.workspace_id).defer("segments", "sizes", "lockfile")
    by_version = light.select_related("prompt__channel").in_bulk(keys["version"])
    links = ("prompt__channel", "version", "previous_version", "release")
    rows = LabelMove.objects.in_workspace(agent.workspace_id).select_related(*links)
    by_move = rows.defer(*heavy("version"), *heavy("previous_version")).in_bulk(keys["label"])
    return [
        Happening(
            what,
            at,
            by_event.get(key) if what in ("change", "release") else None,
            by_version.get(key) if what == "version" else None,
            by_move.get(key) if what == "label" else None,
            last_causes(by_version[key]) if what == "version" and key in by_version else [],
        )
        for what, key, at in found
    ]


def last_causes(version: PromptVersion) -> list[Cause]:
    """Kinds and revisions alone: their names stand on the version's own page."""
    causes = [in_words(cause, {}) for cause in reversed(version.causes)]
    return list(dict.fromkeys(causes))[:SHOWN_CAUSES]


@dataclass(frozen=True)
class Fetches:
    """How often its prompts were handed out within a day, and to how many keys."""

    count: int
    keys: int
    last_at: datetime | None


def fetches_of(agent: Agent, prompt_ids: Sequence[int], within: timedelta = DAY) -> Fetches:
    if not prompt_ids:
        return Fetches(0, 0, None)
    rows = LedgerEntry.objects.in_workspace(agent.workspace_id).filter(
        prompt__in=list(prompt_ids), at__gte=timezone.now() - within
    )
    found = rows.aggregate(count=Count("pk"), keys=Count("key", distinct=True), last_at=Max("at"))
    return Fetches(**found)

"""The questions asked about the ledger: what was handed out to whom, and who holds an old version."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Exists, F, Max, OuterRef, Q, QuerySet
from django.utils import timezone

from personas.models import ApiKey, Workspace
from prompts.models import LATEST, AgentPrompt, LabelMove, LedgerEntry, PromptLabel, PromptVersion

PAGE, LARGEST_PAGE = 50, 200
# A bot that has not come back for so long is gone rather than behind.
REMEMBERED = timedelta(days=30)
# Prompt and label; and with the version that was fetched.
Pointer = tuple[int, str]
Held = tuple[int, str, int]


@dataclass(frozen=True)
class LedgerFilter:
    """What to look for; what is left empty is not asked about."""

    agent: str = ""
    channel: str = ""
    key_id: int | None = None
    version_id: int | None = None
    status: int | None = None
    label: str = ""
    request_id: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class LedgerPage:
    """Rows, newest first, and the id to go on from; None at the end."""

    rows: list[LedgerEntry]
    next_cursor: int | None


def ledger_page(
    workspace: Workspace | int,
    wanted: LedgerFilter,
    *,
    before: int | None = None,
    limit: int = PAGE,
    using: str = DEFAULT_DB_ALIAS,
) -> LedgerPage:
    limit = max(1, min(limit, LARGEST_PAGE))
    rows = ledger_rows(workspace, wanted).using(using)
    if before is not None:
        rows = rows.filter(older_than(workspace, before, using))
    found = list(rows[: limit + 1])
    return LedgerPage(found[:limit], found[limit - 1].pk if len(found) > limit else None)


def older_than(workspace: Workspace | int, row_id: int, using: str = DEFAULT_DB_ALIAS) -> Q:
    """Whatever comes after this row when the newest stands first."""
    rows = LedgerEntry.objects.in_workspace(workspace).using(using).filter(pk=row_id)
    at = rows.values_list("at", flat=True).first()
    if at is None:
        # Rolled off while somebody was reading: all that is left after it has a smaller id, if any.
        return Q(pk__lt=row_id)
    # The first condition follows from the second; it is the one that an index answers.
    return Q(at__lte=at) & (Q(at__lt=at) | Q(pk__lt=row_id))


def ledger_rows(workspace: Workspace | int, wanted: LedgerFilter) -> QuerySet[LedgerEntry]:
    rows = LedgerEntry.objects.in_workspace(workspace)
    exact = {
        "key_id": wanted.key_id,
        "version_id": wanted.version_id,
        "status": wanted.status,
        "label": wanted.label or None,
        "request_id": wanted.request_id or None,
        "at__gte": wanted.since,
        "at__lt": wanted.until,
    }
    rows = rows.filter(**{name: value for name, value in exact.items() if value is not None})
    if wanted.agent or wanted.channel:
        rows = rows.filter(prompt__in=prompt_ids(workspace, wanted.agent, wanted.channel))
    links = ("key", "prompt__agent", "prompt__channel", "version")
    return rows.select_related(*links).defer(*heavy("version")).order_by("-at", "-pk")


def prompt_ids(workspace: Workspace | int, agent: str, channel: str) -> list[int]:
    """Few, and told to the database one by one: it then finds the rows by their index."""
    rows = AgentPrompt.objects.in_workspace(workspace)
    rows = rows.filter(agent__slug=agent) if agent else rows
    rows = rows.filter(channel__slug=channel) if channel else rows
    return list(rows.values_list("pk", flat=True))


def heavy(path: str) -> list[str]:
    """The columns of a version that no list shows."""
    return [f"{path}__{name}" for name in ("segments", "sizes", "lockfile", "causes")]


@dataclass(frozen=True)
class StaleBot:
    """A key whose last fetch brought another version than its label points at now."""

    key: ApiKey
    prompt: AgentPrompt
    label: str
    # What it got last and when; no present version means that the label was taken off.
    held: PromptVersion
    fetched_at: datetime
    present: PromptVersion | None
    # Since when the label is no longer where the bot saw it, and whether it was rolled back from there.
    since: datetime
    is_rolled_back: bool
    ledger_id: int


def stale_bots(
    workspace: Workspace | int, *, within: timedelta = REMEMBERED, using: str = DEFAULT_DB_ALIAS
) -> list[StaleBot]:
    """Keys in use that hold something else than they would get now, the longest behind first."""
    behind = fetches_behind(workspace, timezone.now() - within, using)
    pointers = pointers_of(workspace, {row.prompt_id for row in behind}, using)
    wanted = {pointers.get((row.prompt_id, row.label)) or 0 for row in behind}
    versions = PromptVersion.objects.in_workspace(workspace).using(using).filter(pk__in=wanted)
    present = versions.defer("segments", "sizes", "lockfile", "causes").in_bulk() if behind else {}
    left = departures(workspace, behind, using) if behind else {}
    found = [
        stale_bot(row, present.get(pointers.get((row.prompt_id, row.label)) or 0), left) for row in behind
    ]
    return sorted(found, key=lambda bot: (bot.since, bot.ledger_id))


def stale_bot(
    row: LedgerEntry, present: PromptVersion | None, left: Mapping[Held, tuple[datetime, bool]]
) -> StaleBot:
    if row.key is None:
        raise ValueError(f"Ledger row {row.pk} is no bot's.")
    since, is_rolled_back = left.get((row.prompt_id, row.label, row.version_id), (row.at, False))
    return StaleBot(
        row.key, row.prompt, row.label, row.version, row.at, present, since, is_rolled_back, row.pk
    )


def fetches_behind(
    workspace: Workspace | int, since: datetime, using: str = DEFAULT_DB_ALIAS
) -> list[LedgerEntry]:
    """Per key, prompt and label the newest row, where the label is elsewhere now; not of keys that ended."""
    now = timezone.now()
    keys = ApiKey.objects.in_workspace(workspace).filter(revoked_at=None, expires_at__gt=now)
    rows = LedgerEntry.objects.in_workspace(workspace).using(using)
    newest = (
        rows.filter(at__gte=since, key__in=list(keys.using(using).values_list("pk", flat=True)))
        # Those who asked for the past hold what they asked for.
        .exclude(label__contains="@")
        .values("key_id", "prompt_id", "label")
        .annotate(last=Max("pk"))
        .values("last")
        .order_by()
    )
    here = PromptLabel.objects.in_workspace(workspace).filter(
        prompt=OuterRef("prompt"), name=OuterRef("label"), version=OuterRef("version")
    )
    # Nearly all hold what they would get: the database leaves those out, for reading them takes longest.
    found = rows.filter(~Exists(here), pk__in=newest, at__gte=since, prompt__is_live=True)
    found = found.exclude(label=LATEST, version=F("prompt__latest"))
    links = ("key", "prompt__agent", "prompt__channel", "version")
    return list(found.select_related(*links).defer(*heavy("version")).order_by("pk"))


def pointers_of(
    workspace: Workspace | int, prompts: Iterable[int], using: str = DEFAULT_DB_ALIAS
) -> dict[Pointer, int | None]:
    """Where every label of these prompts points now."""
    ids = list(prompts)
    labels = PromptLabel.objects.in_workspace(workspace).using(using).filter(prompt__in=ids)
    found: dict[Pointer, int | None] = {
        (prompt, name): version
        for prompt, name, version in labels.values_list("prompt_id", "name", "version_id")
    }
    rows = AgentPrompt.objects.in_workspace(workspace).using(using).filter(pk__in=ids)
    latest = rows.values_list("pk", "latest_id")
    return found | {(prompt, LATEST): version for prompt, version in latest}


def departures(
    workspace: Workspace | int, rows: Sequence[LedgerEntry], using: str = DEFAULT_DB_ALIAS
) -> dict[Held, tuple[datetime, bool]]:
    """When each label left the version that was fetched, the last time, and whether by a roll-back."""
    prompts = {row.prompt_id for row in rows}
    moves = (
        LabelMove.objects.in_workspace(workspace)
        .using(using)
        .filter(prompt__in=prompts, previous_version__in={row.version_id for row in rows})
    )
    found = {
        (prompt, label, version): (at, reason == "rollback")
        for prompt, label, version, at, reason in moves.order_by("prompt", "sequence").values_list(
            "prompt_id", "label", "previous_version_id", "at", "reason"
        )
    }
    # The latest version is left when the next is built.
    follows = {(row.prompt_id, row.version.number + 1): row.version_id for row in rows if row.label == LATEST}
    built = (
        PromptVersion.objects.in_workspace(workspace)
        .using(using)
        .filter(prompt__in=prompts, number__in={number for _, number in follows})
    )
    for prompt, number, at in built.values_list("prompt_id", "number", "created_at"):
        if held := follows.get((prompt, number)):
            found[prompt, LATEST, held] = (at, False)
    return found

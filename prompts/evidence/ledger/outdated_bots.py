"""Find outdated bots: the label no longer points to the version that they fetched last."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Exists, F, Max, OuterRef, Q, QuerySet
from django.utils import timezone

from core.db.fields import JOINED_BY
from personas.events.services import build_event, record_events
from personas.models import ApiKey, Event, Workspace
from prompts.models import LATEST, AgentPrompt, LabelMove, LedgerEntry, PromptLabel, PromptVersion
from prompts.publishing.versions.selectors import HEAVY_COLUMNS

# A bot is reported this long after its last fetch and the label move: it may still fetch the new version.
OUTDATED_GRACE = timedelta(hours=1)
# The event bot.outdated is recorded only for bots that have fetched within this time.
EVENT_LOOKBACK = timedelta(days=2)
# A bot that has fetched nothing for this long is considered unused and not listed.
LOOKBACK = timedelta(days=30)


# SQLite limits the number of values in a query.
MAX_IDS_PER_QUERY = 10_000
PROMPT_COLUMNS = (
    *("workspace_id", "agent__slug", "agent__name", "agent__workspace_id"),
    *("channel__slug", "channel__name", "channel__workspace_id"),
)
# Ids of ledger row, key and prompt, and the label.
FetchRow = tuple[int, int, int, str]
# Prompt id and label.
PromptLabelKey = tuple[int, str]
# Prompt id, label and the id of the fetched version.
FetchedVersionKey = tuple[int, str, int]


@dataclass(frozen=True)
class OutdatedBot:
    """A key whose last fetch of a prompt returned a version that the label no longer points to."""

    key: ApiKey
    prompt: AgentPrompt
    label: str
    fetched_version: PromptVersion
    fetched_at: datetime
    # None if the label was removed.
    current_version: PromptVersion | None
    # When the label was moved away from the fetched version, and whether that was a roll-back.
    since: datetime
    is_rolled_back: bool
    ledger_id: int


class OutdatedFetch(NamedTuple):
    """The last fetch of a prompt and label by a key, if the label points to another version now."""

    ledger_id: int
    key_id: int
    prompt_id: int
    label: str
    version_id: int
    version_number: int
    at: datetime


class OutdatedFetchDetails(NamedTuple):
    """An outdated fetch, the version that the label points to now, and when it was moved and how."""

    fetch: OutdatedFetch
    current_version_id: int | None
    since: datetime
    is_rolled_back: bool


def list_outdated_bots(
    workspace: Workspace | int, *, within: timedelta = LOOKBACK, using: str = DEFAULT_DB_ALIAS
) -> list[OutdatedBot]:
    """List the outdated bots of a workspace, the longest outdated first."""
    return load_outdated_bots(workspace, find_outdated_fetches(workspace, within=within, using=using), using)


def find_outdated_fetches(
    workspace: Workspace | int, *, within: timedelta = LOOKBACK, using: str = DEFAULT_DB_ALIAS
) -> list[OutdatedFetchDetails]:
    """List the outdated fetches of a workspace, the longest outdated first, without loading records.

    A page shows only some of them, but needs all of them to sort and count.
    """
    fetches = list_outdated_fetches(workspace, timezone.now() - within, using)
    if not fetches:
        return []
    targets = get_label_targets(workspace, {fetch.prompt_id for fetch in fetches}, using)
    departures = find_label_departures(workspace, fetches, using)
    details = [
        OutdatedFetchDetails(
            fetch,
            targets.get((fetch.prompt_id, fetch.label)),
            *departures.get((fetch.prompt_id, fetch.label, fetch.version_id), (fetch.at, False)),
        )
        for fetch in fetches
    ]
    return sorted(details, key=lambda detail: (detail.since, detail.fetch.ledger_id))


def load_outdated_bots(
    workspace: Workspace | int, details: Sequence[OutdatedFetchDetails], using: str = DEFAULT_DB_ALIAS
) -> list[OutdatedBot]:
    """Load the keys, prompts and versions of outdated fetches, each record once."""
    if not details:
        return []
    keys = ApiKey.objects.in_workspace(workspace).using(using).in_bulk({one.fetch.key_id for one in details})
    rows = AgentPrompt.objects.in_workspace(workspace).using(using).select_related("agent", "channel")
    prompts = rows.only(*PROMPT_COLUMNS).in_bulk({one.fetch.prompt_id for one in details})
    version_ids = {one.fetch.version_id for one in details} | {
        one.current_version_id for one in details if one.current_version_id
    }
    versions = PromptVersion.objects.in_workspace(workspace).using(using).defer(*HEAVY_COLUMNS)
    versions_by_id = versions.in_bulk(version_ids)
    return [
        OutdatedBot(
            keys[fetch.key_id],
            prompts[fetch.prompt_id],
            fetch.label,
            versions_by_id[fetch.version_id],
            fetch.at,
            versions_by_id.get(current_version_id or 0),
            since,
            is_rolled_back,
            fetch.ledger_id,
        )
        for fetch, current_version_id, since, is_rolled_back in details
    ]


def list_outdated_fetches(
    workspace: Workspace | int, since: datetime, using: str = DEFAULT_DB_ALIAS
) -> list[OutdatedFetch]:
    """List the last fetch of each active key, prompt and label, if the label points to another version.

    The ids are sent back as values: the planner expects far more rows from a subquery, and would read the
    ledger a second time.
    """
    ids = [ledger_id for ledger_id, *_ in find_outdated_rows(workspace, since, using)]
    entries = LedgerEntry.objects.in_workspace(workspace).using(using)
    columns = ("pk", "key_id", "prompt_id", "label", "version_id", "version__number", "at")
    return [
        OutdatedFetch(*row)
        for start in range(0, len(ids), MAX_IDS_PER_QUERY)
        for row in entries.filter(at__gte=since, pk__in=ids[start : start + MAX_IDS_PER_QUERY]).values_list(
            *columns
        )
    ]


def find_outdated_rows(
    workspace: Workspace | int, since: datetime, using: str = DEFAULT_DB_ALIAS
) -> list[FetchRow]:
    """Return the ids, keys, prompts and labels of the outdated fetches.

    The first query finds fetches whose version is not current, which are few. The second one finds out
    whether the same key has fetched the same label again. To group all fetches takes twice as long.
    """
    workspace_id = workspace if isinstance(workspace, int) else workspace.pk
    rows = list(build_past_fetch_query(workspace_id, since, timezone.now()).using(using))
    if not rows:
        return []
    ids, prompts = {row[0] for row in rows}, {row[2] for row in rows}
    joined_prompts, joined_ids = (JOINED_BY.join(map(str, sorted(values))) for values in (prompts, ids))
    repeated = build_newest_query(workspace_id, since, min(ids), joined_prompts, joined_ids)
    newest = {row[0] for row in repeated.using(using)}
    return [row for row in rows if row[0] in newest]


def build_newest_query(
    workspace: int, since: datetime, first_id: int, prompts: str, ids: str
) -> "QuerySet[Any, FetchRow]":
    """Query which of these fetches are the last ones of their key, prompt and label.

    `prompts` and `ids` are joined with commas.
    """
    entries = LedgerEntry.objects.in_workspace(workspace).filter(at__gte=since, pk__gte=first_id, skill=None)
    grouped = group_fetches(entries.filter(prompt__in_joined=prompts).order_by())
    return grouped.filter(newest__in_joined=ids)


def list_active_fetches(workspace: Workspace | int, since: datetime, now: datetime) -> QuerySet[LedgerEntry]:
    """List fetches of live prompts by keys that are neither revoked nor expired.

    Fetches of past versions, whose label contains "@", are left out: they are never outdated.
    """
    keys = ApiKey.objects.in_workspace(workspace).filter(revoked_at=None, expires_at__gt=now)
    rows = LedgerEntry.objects.in_workspace(workspace).filter(
        at__gte=since, key__in=keys.values("pk"), prompt__is_active=True, skill=None
    )
    return rows.exclude(label__contains="@").order_by()


def build_past_fetch_query(workspace: int, since: datetime, now: datetime) -> "QuerySet[Any, FetchRow]":
    """Query the last fetch of each key, prompt and label that did not return the current version.

    There is no label row for "latest": it always means the newest version.
    """
    current_labels = PromptLabel.objects.in_workspace(workspace).filter(
        prompt=OuterRef("prompt"), name=OuterRef("label"), version=OuterRef("version")
    )
    rows = list_active_fetches(workspace, since, now).filter(
        ~Exists(current_labels), ~Q(label=LATEST, version=F("prompt__latest"))
    )
    return group_fetches(rows)


def group_fetches(rows: QuerySet[LedgerEntry]) -> "QuerySet[Any, FetchRow]":
    """Group fetches by key, prompt and label."""
    grouped = rows.values("key_id", "prompt_id", "label").annotate(newest=Max("pk"))
    fetches: QuerySet[Any, FetchRow] = grouped.values_list("newest", "key_id", "prompt_id", "label")
    return fetches


def get_label_targets(
    workspace: Workspace | int, prompts: Iterable[int], using: str = DEFAULT_DB_ALIAS
) -> dict[PromptLabelKey, int | None]:
    """Return the id of the version that each label of these prompts points to now, including `latest`."""
    ids = list(prompts)
    labels = PromptLabel.objects.in_workspace(workspace).using(using).filter(prompt__in=ids)
    targets: dict[PromptLabelKey, int | None] = {
        (prompt, name): version
        for prompt, name, version in labels.values_list("prompt_id", "name", "version_id")
    }
    rows = AgentPrompt.objects.in_workspace(workspace).using(using).filter(pk__in=ids)
    latest = rows.values_list("pk", "latest_id")
    return targets | {(prompt, LATEST): version for prompt, version in latest}


def find_label_departures(
    workspace: Workspace | int, rows: Sequence[OutdatedFetch], using: str = DEFAULT_DB_ALIAS
) -> dict[FetchedVersionKey, tuple[datetime, bool]]:
    """Return when each label was last moved away from the fetched version, and whether by a roll-back."""
    prompts = {row.prompt_id for row in rows}
    moves = (
        LabelMove.objects.in_workspace(workspace)
        .using(using)
        .filter(prompt__in=prompts, previous_version__in={row.version_id for row in rows})
    )
    departures = {
        (prompt, label, version): (at, reason == "rollback")
        for prompt, label, version, at, reason in moves.order_by("prompt", "sequence").values_list(
            "prompt_id", "label", "previous_version_id", "at", "reason"
        )
    }
    # Moves of the label `latest` are not recorded: it moves when the next version is built.
    follows = {(row.prompt_id, row.version_number + 1): row.version_id for row in rows if row.label == LATEST}
    built = (
        PromptVersion.objects.in_workspace(workspace)
        .using(using)
        .filter(prompt__in={prompt for prompt, _ in follows}, number__in={number for _, number in follows})
    )
    for prompt, number, at in built.values_list("prompt_id", "number", "created_at"):
        if version_id := follows.get((prompt, number)):
            departures[prompt, LATEST, version_id] = (at, False)
    return departures


def record_outdated_bots(workspace: Workspace | int) -> int:
    """Record an event for each bot that is outdated since OUTDATED_GRACE, once per last fetch.

    Return the number of events.
    """
    limit = timezone.now() - OUTDATED_GRACE
    details = [
        one
        for one in find_outdated_fetches(workspace, within=EVENT_LOOKBACK)
        if one.since < limit and one.fetch.at < limit
    ]
    if not details:
        return 0
    events = Event.objects.in_workspace(workspace).filter(type="bot.outdated", at__gte=limit - EVENT_LOOKBACK)
    known = set(events.values_list("data__ledger_id", flat=True))
    bots = load_outdated_bots(workspace, [one for one in details if one.fetch.ledger_id not in known])
    new = [
        build_event(
            bot.prompt.workspace_id,
            "bot.outdated",
            {
                "agent": bot.prompt.agent.slug,
                "channel": bot.prompt.channel.slug,
                "label": bot.label,
                "key_id": bot.key.pk,
                "number": bot.fetched_version.number,
                "current_number": bot.current_version.number if bot.current_version else None,
                "ledger_id": bot.ledger_id,
            },
        )
        for bot in bots
    ]
    if new:
        record_events(new)
    return len(new)

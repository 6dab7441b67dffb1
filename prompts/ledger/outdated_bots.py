"""Find outdated bots: their last fetch returned another version than the label points to now."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import DEFAULT_DB_ALIAS
from django.db.models import F, FilteredRelation, Max, Q, QuerySet
from django.utils import timezone

from personas.models import ApiKey, Workspace
from prompts.models import LATEST, AgentPrompt, LabelMove, LedgerEntry, PromptLabel, PromptVersion
from prompts.versions.selectors import HEAVY_COLUMNS

# A bot that has fetched nothing for this long is considered unused and not listed.
LOOKBACK = timedelta(days=30)


# SQLite limits the number of values in a query.
MAX_IDS_PER_QUERY = 10_000
# There is no label row for "latest": it always means the newest version.
CURRENT_VERSION_CONDITION = Q(label=LATEST, version=F("prompt__latest")) | (
    ~Q(label=LATEST) & Q(version=F("pointer__version"))
)
PROMPT_COLUMNS = (
    *("workspace_id", "agent__slug", "agent__name", "agent__workspace_id"),
    *("channel__slug", "channel__name", "channel__workspace_id"),
)
# Prompt id and label.
PromptLabelKey = tuple[int, str]
# Prompt id, label and the id of the fetched version.
FetchedVersionKey = tuple[int, str, int]


@dataclass(frozen=True)
class OutdatedBot:
    """A key whose last fetch of a prompt and label returned another version than the label points to now."""

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

    One pass over the ledger groups the fetches and compares the newest one with the newest that returned the
    current version. Only the rows of outdated fetches are read a second time.
    """
    keys = ApiKey.objects.in_workspace(workspace).filter(revoked_at=None, expires_at__gt=timezone.now())
    entries = LedgerEntry.objects.in_workspace(workspace).using(using).filter(at__gte=since)
    rows = entries.filter(
        key__in=list(keys.using(using).values_list("pk", flat=True)), prompt__is_live=True
    ).order_by()
    newest = (
        annotate_current_label(rows)
        .values("key_id", "prompt_id", "label")
        .annotate(newest=Max("pk"), newest_current=Max("pk", filter=CURRENT_VERSION_CONDITION))
        .filter(Q(newest_current=None) | Q(newest__gt=F("newest_current")))
    )
    # The ids are sent back as values: the planner expects far more rows from the subquery, and would read
    # the ledger a second time.
    ids = list(newest.values_list("newest", flat=True))
    columns = ("pk", "key_id", "prompt_id", "label", "version_id", "version__number", "at")
    return [
        OutdatedFetch(*row)
        for start in range(0, len(ids), MAX_IDS_PER_QUERY)
        for row in entries.filter(pk__in=ids[start : start + MAX_IDS_PER_QUERY]).values_list(*columns)
    ]


def annotate_current_label(rows: QuerySet[LedgerEntry]) -> QuerySet[LedgerEntry]:
    """Join the label of each fetch, so that CURRENT_VERSION_CONDITION can be applied.

    A subquery for the label would run once per ledger row. Fetches of past versions, whose label contains
    "@", are left out: they are never outdated.
    """
    return rows.exclude(label__contains="@").annotate(
        pointer=FilteredRelation("prompt__labels", condition=Q(prompt__labels__name=F("label")))
    )


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

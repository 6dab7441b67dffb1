"""Find outdated bots: their last fetch returned another version than the label points to now."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Exists, F, Max, OuterRef
from django.utils import timezone

from personas.models import ApiKey, Workspace
from prompts.models import LATEST, AgentPrompt, LabelMove, LedgerEntry, PromptLabel, PromptVersion
from prompts.versions.selectors import HEAVY_COLUMNS, list_heavy_columns

# A bot that has fetched nothing for this long is considered unused and not listed.
LOOKBACK = timedelta(days=30)


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


def list_outdated_bots(
    workspace: Workspace | int, *, within: timedelta = LOOKBACK, using: str = DEFAULT_DB_ALIAS
) -> list[OutdatedBot]:
    """List the outdated bots of a workspace, the longest outdated first."""
    fetches = list_outdated_fetches(workspace, timezone.now() - within, using)
    targets = get_label_targets(workspace, {row.prompt_id for row in fetches}, using)
    target_ids = {targets.get((row.prompt_id, row.label)) or 0 for row in fetches}
    versions = PromptVersion.objects.in_workspace(workspace).using(using).filter(pk__in=target_ids)
    current = versions.defer(*HEAVY_COLUMNS).in_bulk() if fetches else {}
    departures = find_label_departures(workspace, fetches, using) if fetches else {}
    bots = [
        build_outdated_bot(row, current.get(targets.get((row.prompt_id, row.label)) or 0), departures)
        for row in fetches
    ]
    return sorted(bots, key=lambda bot: (bot.since, bot.ledger_id))


def build_outdated_bot(
    row: LedgerEntry,
    current_version: PromptVersion | None,
    departures: Mapping[FetchedVersionKey, tuple[datetime, bool]],
) -> OutdatedBot:
    if row.key is None:
        raise ValueError(f"Ledger row {row.pk} is no bot's.")
    since, is_rolled_back = departures.get((row.prompt_id, row.label, row.version_id), (row.at, False))
    return OutdatedBot(
        row.key, row.prompt, row.label, row.version, row.at, current_version, since, is_rolled_back, row.pk
    )


def list_outdated_fetches(
    workspace: Workspace | int, since: datetime, using: str = DEFAULT_DB_ALIAS
) -> list[LedgerEntry]:
    """List the last fetch of each active key, prompt and label, if the label points to another version."""
    now = timezone.now()
    keys = ApiKey.objects.in_workspace(workspace).filter(revoked_at=None, expires_at__gt=now)
    rows = LedgerEntry.objects.in_workspace(workspace).using(using)
    newest = (
        rows.filter(at__gte=since, key__in=list(keys.using(using).values_list("pk", flat=True)))
        # The label contains @ if the fetch was for a time in the past. Such fetches are never outdated.
        .exclude(label__contains="@")
        .values("key_id", "prompt_id", "label")
        .annotate(last=Max("pk"))
        .values("last")
        .order_by()
    )
    same_target = PromptLabel.objects.in_workspace(workspace).filter(
        prompt=OuterRef("prompt"), name=OuterRef("label"), version=OuterRef("version")
    )
    # Exclude up-to-date fetches in SQL: nearly all fetches are up to date, and loading them would be slow.
    outdated = rows.filter(~Exists(same_target), pk__in=newest, at__gte=since, prompt__is_live=True)
    outdated = outdated.exclude(label=LATEST, version=F("prompt__latest"))
    relations = ("key", "prompt__agent", "prompt__channel", "version")
    return list(outdated.select_related(*relations).defer(*list_heavy_columns("version")).order_by("pk"))


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
    workspace: Workspace | int, rows: Sequence[LedgerEntry], using: str = DEFAULT_DB_ALIAS
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
    follows = {(row.prompt_id, row.version.number + 1): row.version_id for row in rows if row.label == LATEST}
    built = (
        PromptVersion.objects.in_workspace(workspace)
        .using(using)
        .filter(prompt__in=prompts, number__in={number for _, number in follows})
    )
    for prompt, number, at in built.values_list("prompt_id", "number", "created_at"):
        if version_id := follows.get((prompt, number)):
            departures[prompt, LATEST, version_id] = (at, False)
    return departures

"""Outdated bots: keys whose last fetch returned another version than their label points to now."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Exists, F, Max, OuterRef
from django.utils import timezone

from personas.models import ApiKey, Workspace
from prompts.ledger.selectors import list_heavy_columns
from prompts.models import LATEST, AgentPrompt, LabelMove, LedgerEntry, PromptLabel, PromptVersion

# A bot that has not come back for so long is gone rather than behind.
LOOKBACK = timedelta(days=30)


# Prompt and label; and with the version that was fetched.
PromptLabelKey = tuple[int, str]


FetchedVersionKey = tuple[int, str, int]


@dataclass(frozen=True)
class OutdatedBot:
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


def list_outdated_bots(
    workspace: Workspace | int, *, within: timedelta = LOOKBACK, using: str = DEFAULT_DB_ALIAS
) -> list[OutdatedBot]:
    """Keys in use that hold something else than they would get now, the longest behind first."""
    behind = list_outdated_fetches(workspace, timezone.now() - within, using)
    pointers = get_label_targets(workspace, {row.prompt_id for row in behind}, using)
    wanted = {pointers.get((row.prompt_id, row.label)) or 0 for row in behind}
    versions = PromptVersion.objects.in_workspace(workspace).using(using).filter(pk__in=wanted)
    present = versions.defer("segments", "sizes", "lockfile", "causes").in_bulk() if behind else {}
    left = find_label_departures(workspace, behind, using) if behind else {}
    found = [
        build_outdated_bot(row, present.get(pointers.get((row.prompt_id, row.label)) or 0), left)
        for row in behind
    ]
    return sorted(found, key=lambda bot: (bot.since, bot.ledger_id))


def build_outdated_bot(
    row: LedgerEntry, present: PromptVersion | None, left: Mapping[FetchedVersionKey, tuple[datetime, bool]]
) -> OutdatedBot:
    if row.key is None:
        raise ValueError(f"Ledger row {row.pk} is no bot's.")
    since, is_rolled_back = left.get((row.prompt_id, row.label, row.version_id), (row.at, False))
    return OutdatedBot(
        row.key, row.prompt, row.label, row.version, row.at, present, since, is_rolled_back, row.pk
    )


def list_outdated_fetches(
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
    return list(found.select_related(*links).defer(*list_heavy_columns("version")).order_by("pk"))


def get_label_targets(
    workspace: Workspace | int, prompts: Iterable[int], using: str = DEFAULT_DB_ALIAS
) -> dict[PromptLabelKey, int | None]:
    """Where every label of these prompts points now."""
    ids = list(prompts)
    labels = PromptLabel.objects.in_workspace(workspace).using(using).filter(prompt__in=ids)
    found: dict[PromptLabelKey, int | None] = {
        (prompt, name): version
        for prompt, name, version in labels.values_list("prompt_id", "name", "version_id")
    }
    rows = AgentPrompt.objects.in_workspace(workspace).using(using).filter(pk__in=ids)
    latest = rows.values_list("pk", "latest_id")
    return found | {(prompt, LATEST): version for prompt, version in latest}


def find_label_departures(
    workspace: Workspace | int, rows: Sequence[LedgerEntry], using: str = DEFAULT_DB_ALIAS
) -> dict[FetchedVersionKey, tuple[datetime, bool]]:
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

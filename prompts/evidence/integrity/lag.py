"""How far sealing and signing are behind: for every workspace the oldest unsealed row and unsigned change.

All queries are for all workspaces at once, so their number does not grow with the number of workspaces.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial, reduce
from operator import or_
from typing import Any, NamedTuple

from django.db.models import F, OuterRef, Q, QuerySet, Subquery, Sum, TextField, Value
from django.db.models.functions import Cast, Coalesce
from django.utils import timezone

from personas.tenancy.lost_nodes import list_from_workspaces, list_workspaces_in_scope
from prompts.evidence.integrity.checkpoint_files import is_copied_since
from prompts.evidence.ledger.blocks import SETTLE_DELAY, list_workspaces_with_prompts
from prompts.models import (
    AgentPrompt,
    Checkpoint,
    LabelMove,
    LedgerBlock,
    LedgerEntry,
    LedgerExpiry,
    PromptVersion,
)

# A workspace with changes is signed when its last checkpoint is this old.
SIGN_INTERVAL = timedelta(hours=1)
# The longest acceptable time until a row is sealed, and until a change is signed. The doctor and the metrics
# report longer times.
MAX_UNSEALED_TIME, MAX_UNSIGNED_TIME = timedelta(minutes=3), timedelta(hours=2)
# How many workspaces one query covers, with one condition for each of them.
CHUNK_SIZE = 200
# Used as the time of the last checkpoint if there is none: it is before every change.
NEVER = datetime(1970, 1, 1, tzinfo=UTC)


class ChainCounts(NamedTuple):
    """How many rows the chains of a workspace have, or how many of them its last checkpoint covers."""

    versions: int
    label_moves: int
    blocks: int
    expiries: int


@dataclass(frozen=True)
class SealingState:
    """How far one workspace is sealed and signed."""

    workspace_id: int
    slug: str
    created_at: datetime
    counts: ChainCounts
    # The time of the oldest row that is not in a block yet; None if there is no such row.
    unsealed_at: datetime | None
    sealed_at: datetime | None
    signed_at: datetime | None
    # None if there is no checkpoint, or if the last one cannot be read.
    signed_counts: ChainCounts | None

    def get_unsealed_since(self, now: datetime) -> datetime | None:
        """Return since when the oldest unsealed row exists.

        Its own time may be wrong. It was not settled when the last block was closed, so it cannot be older.
        """
        if self.unsealed_at is None:
            return None
        earliest = self.sealed_at - SETTLE_DELAY if self.sealed_at else self.created_at
        return self.unsealed_at if earliest <= self.unsealed_at <= now else min(earliest, now)

    def has_unsigned_changes(self, now: datetime) -> bool:
        """Whether a checkpoint would differ from the last one. It seals the settled rows first."""
        if self.counts.versions == 0:
            return False
        since = self.get_unsealed_since(now)
        return self.counts != self.signed_counts or (since is not None and since < now - SETTLE_DELAY)

    def is_due(self, now: datetime) -> bool:
        """Whether to sign a checkpoint now. One from the future means that the clock was set back."""
        if not self.has_unsigned_changes(now):
            return False
        return self.signed_at is None or not now - SIGN_INTERVAL < self.signed_at <= now


@dataclass(frozen=True)
class WorkspaceLag:
    """How long the oldest row of a workspace is unsealed and its oldest change unsigned; zero if none is."""

    slug: str
    unsealed: timedelta
    unsigned: timedelta

    @property
    def is_unsealed_too_long(self) -> bool:
        return self.unsealed > MAX_UNSEALED_TIME

    @property
    def is_unsigned_too_long(self) -> bool:
        return self.unsigned > MAX_UNSIGNED_TIME


def list_workspaces_to_sign(now: datetime | None = None) -> list[int]:
    """List the workspaces that are due for a checkpoint, the one that was signed longest ago first.

    After them come those whose last checkpoint was not copied to the file, because a worker was killed or the
    file could not be written: signing writes the missing copies.
    """
    now = now or timezone.now()
    states = list_from_workspaces(list_sealing_states)
    due = [state for state in states if state.is_due(now)]
    due.sort(key=lambda state: (state.signed_at is not None, state.signed_at, state.workspace_id))
    uncopied = [
        state.workspace_id
        for state in states
        if state.signed_at
        and not state.is_due(now)
        and not is_copied_since(state.workspace_id, state.signed_at)
    ]
    return [*(state.workspace_id for state in due), *uncopied]


# --- lag -----------------------------------------------------------------------------------------------


def list_workspace_lags(now: datetime | None = None) -> list[WorkspaceLag]:
    """List the workspaces with unsealed rows or unsigned changes."""
    return list_from_workspaces(partial(read_workspace_lags, now or timezone.now()))


def read_workspace_lags(now: datetime) -> list[WorkspaceLag]:
    states = list_sealing_states()
    changed = [state for state in states if state.has_unsigned_changes(now)]
    changed_at = find_oldest_changes(changed, now)
    lags = []
    for state in states:
        unsealed_since = state.get_unsealed_since(now)
        since = changed_at.get(state.workspace_id)
        if unsealed_since or since:
            lags.append(WorkspaceLag(state.slug, get_age(unsealed_since, now), get_age(since, now)))
    return lags


def get_age(since: datetime | None, now: datetime) -> timedelta:
    return max(now - since, timedelta()) if since else timedelta()


def find_oldest_changes(states: Sequence[SealingState], now: datetime) -> dict[int, datetime]:
    """Return the time of the oldest unsigned change of each workspace.

    For a workspace that was signed recently, the time of its last checkpoint is precise enough: the oldest
    change is not older.
    """
    recent = {state.workspace_id: state.signed_at for state in states if is_recent(state.signed_at, now)}
    oldest = {workspace_id: at for workspace_id, at in recent.items() if at}
    others = [state for state in states if state.workspace_id not in oldest]
    for start in range(0, len(others), CHUNK_SIZE):
        chunk = others[start : start + CHUNK_SIZE]
        since = {state.workspace_id: state.get_unsealed_since(now) for state in chunk}
        for workspace_id, at in [*since.items(), *iterate_changes(chunk)]:
            if at:
                oldest[workspace_id] = min(at, oldest.get(workspace_id, at))
    # Fallback where no later change was found, because a clock was wrong or the last checkpoint is damaged.
    for state in others:
        oldest.setdefault(state.workspace_id, state.signed_at or state.created_at)
    return oldest


def is_recent(signed_at: datetime | None, now: datetime) -> bool:
    return signed_at is not None and now - MAX_UNSIGNED_TIME < signed_at <= now


def iterate_changes(states: Sequence[SealingState]) -> Iterable[tuple[int, datetime | None]]:
    """Yield workspaces with the times of their oldest version, label move and block since the checkpoint."""
    rows = list_workspaces_with_prompts().filter(workspace__in=[state.workspace_id for state in states])
    signed_at = get_newest(Checkpoint.unscoped.all(), "sequence", "at")
    rows = rows.annotate(signed_at=Coalesce(signed_at, Value(NEVER)))
    for model, field in ((PromptVersion, "created_at"), (LabelMove, "at")):
        newer = model.unscoped.filter(
            workspace=OuterRef("workspace"), **{f"{field}__gt": OuterRef("signed_at")}
        )
        oldest = Subquery(newer.order_by(field).values(field)[:1])
        yield from rows.annotate(oldest=oldest).values_list("workspace_id", "oldest")
    blocks = [
        Q(
            workspace=state.workspace_id,
            sequence=(state.signed_counts.blocks if state.signed_counts else 0) + 1,
        )
        for state in states
    ]
    yield from LedgerBlock.unscoped.filter(reduce(or_, blocks)).values_list("workspace", "at")


# --- state ---------------------------------------------------------------------------------------------


def list_sealing_states() -> list[SealingState]:
    """Return the state of every workspace in the scope.

    A workspace without prompts has no chains, so all its counts are 0.
    """
    checkpoints = get_last_checkpoints()
    prompts = AgentPrompt.unscoped.filter(workspace=OuterRef("workspace"), last_number__gt=0).order_by()
    blocks = LedgerBlock.unscoped.all()
    entries = LedgerEntry.unscoped.filter(
        workspace=OuterRef("workspace"), pk__gt=OuterRef("sealed_id")
    ).order_by("pk")
    rows = list_workspaces_with_prompts().annotate(
        versions=Subquery(prompts.values("workspace").annotate(sum=Sum("last_number")).values("sum")),
        label_moves=Subquery(prompts.values("workspace").annotate(sum=Sum("last_move")).values("sum")),
        blocks=get_newest(blocks, "sequence", "sequence"),
        sealed_at=get_newest(blocks, "sequence", "at"),
        sealed_id=Coalesce(get_newest(blocks, "sequence", "last_id"), 0),
        expiries=get_newest(LedgerExpiry.unscoped.all(), "first_id", "block__sequence"),
        unsealed_at=Subquery(entries.values("at")[:1]),
    )
    names = ("versions", "label_moves", "blocks", "expiries", "unsealed_at", "sealed_at")
    chains = {workspace_id: values for workspace_id, *values in rows.values_list("workspace_id", *names)}
    states = []
    for workspace_id, slug, created_at in (
        list_workspaces_in_scope().order_by("pk").values_list("pk", "slug", "created_at")
    ):
        *counts, unsealed_at, sealed_at = chains.get(workspace_id, [None] * len(names))
        chain_counts = ChainCounts(*(count or 0 for count in counts))
        signed_at, signed_counts = checkpoints.get(workspace_id, (None, None))
        states.append(
            SealingState(
                workspace_id,
                slug,
                created_at,
                chain_counts,
                unsealed_at,
                sealed_at,
                signed_at,
                signed_counts,
            )
        )
    return states


def get_newest(rows: QuerySet[Any], order: str, field: str) -> Subquery:
    """Return a subquery for a field of the newest row of each workspace."""
    return Subquery(rows.filter(workspace=OuterRef("workspace")).order_by(f"-{order}").values(field)[:1])


def get_last_checkpoints() -> dict[int, tuple[datetime, ChainCounts | None]]:
    """Return the time and the counts of the last checkpoint of each workspace.

    The body is read as text: a damaged one must not hide the checkpoints of other workspaces.
    """
    checkpoints = Checkpoint.unscoped.annotate(text=Cast(F("body"), TextField()))
    rows = list_workspaces_with_prompts().annotate(
        signed_at=get_newest(checkpoints, "sequence", "at"), text=get_newest(checkpoints, "sequence", "text")
    )
    return {
        workspace_id: (at, read_signed_counts(text))
        for workspace_id, at, text in rows.values_list("workspace_id", "signed_at", "text")
        if at is not None
    }


def read_signed_counts(text: str) -> ChainCounts | None:
    try:
        body = json.loads(text)
        return ChainCounts(
            int(body["versions"]["count"]),
            int(body["label_moves"]["count"]),
            int(body["ledger"]["sequence"]),
            int(body["expiries"]["sequence"]),
        )
    except (ValueError, TypeError, LookupError):
        return None

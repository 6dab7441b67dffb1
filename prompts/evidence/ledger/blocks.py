"""Group ledger rows into blocks that form a hash chain.

A block contains a digest of its rows, so rows that are removed or inserted later are detected.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import takewhile
from typing import Any

import structlog
from django.core.cache import cache
from django.db import DatabaseError, connection, transaction
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.utils import timezone

from personas.api_keys.services import save_last_used
from personas.tenancy.lost_nodes import lock_workspace
from prompts.models import AgentPrompt, LedgerBlock, LedgerEntry
from prompts.proof import ledger_blocks as proof
from prompts.proof.hashed_rows import ledger_rows_digest
from prompts.proof_rows import build_block_row

log = structlog.get_logger(__name__)

SETTLE_DELAY = proof.SETTLE_DELAY
MAX_BLOCK_ROWS = 10_000
# Per workspace and per run of the job. A long backlog takes several runs.
MAX_BLOCKS_PER_RUN = 20
# Id, seal, time and key id of a ledger row.
SealableRow = tuple[int, str, datetime, int | None]
# How long the cache keeps the newest row id that observe_newest_row has seen.
OBSERVATION_SECONDS = 24 * 3_600


def list_workspaces_with_prompts() -> QuerySet[Any, Any]:
    """List the workspaces that have prompts, and may therefore have chains and a ledger.

    Subqueries about a workspace are correlated with this query and not with the table of workspaces, because
    a table that is distributed by workspace can be joined only with another one.
    """
    return AgentPrompt.unscoped.order_by().values("workspace_id").annotate(prompts=Count("pk"))


def list_workspaces_to_seal() -> list[int]:
    """List the workspaces with rows after their last block, the one that was sealed longest ago first.

    Takes three index lookups per workspace.
    """
    blocks = LedgerBlock.unscoped.filter(workspace=OuterRef("workspace")).order_by("-sequence")
    rows = LedgerEntry.unscoped.filter(workspace=OuterRef("workspace")).order_by("-pk")
    workspaces = list_workspaces_with_prompts().annotate(
        sealed=Subquery(blocks.values("last_id")[:1]),
        sealed_at=Subquery(blocks.values("at")[:1]),
        newest=Subquery(rows.values("pk")[:1]),
    )
    unsealed = [
        (sealed_at is not None, sealed_at, workspace_id)
        for workspace_id, sealed, sealed_at, newest in workspaces.values_list(
            "workspace_id", "sealed", "sealed_at", "newest"
        )
        if newest is not None and newest > (sealed or 0)
    ]
    return [workspace_id for _, _, workspace_id in sorted(unsealed)]


def seal_ledger(workspace_id: int) -> int:
    """Put all rows older than SETTLE_DELAY into blocks. Return the number of new blocks."""
    count = 0
    while count < MAX_BLOCKS_PER_RUN and seal_block(workspace_id) is not None:
        count += 1
    return count


def seal_block(workspace_id: int) -> LedgerBlock | None:
    """Create the next block, and save when the keys of its rows were used."""
    sealed = create_next_block(workspace_id)
    if sealed is None:
        return None
    block, uses = sealed
    try:
        # Not in the transaction of the block: with Citus, keys are on all nodes and cannot be written while a
        # node is down. The failed attempt would roll back the block.
        save_last_used(workspace_id, uses)
    except DatabaseError as error:
        if connection.in_atomic_block:
            raise
        log.warning("key_uses_not_saved", workspace=workspace_id, error=type(error).__name__)
    return block


@transaction.atomic
def create_next_block(workspace_id: int) -> tuple[LedgerBlock, dict[int, datetime]] | None:
    """Put the next rows into a block: in id order, up to the first row younger than SETTLE_DELAY.

    Rows with a time in the future are put into a block too, once they have existed for SETTLE_DELAY. Return
    the block with the times of last use of the keys in it.
    """
    # Only one job at a time adds blocks to a workspace.
    lock_workspace(workspace_id)
    blocks = LedgerBlock.objects.in_workspace(workspace_id)
    previous = blocks.order_by("-sequence").first()
    now = timezone.now()
    rows = list_rows_to_seal(workspace_id, previous.last_id if previous else 0, now - SETTLE_DELAY)
    if not rows:
        return None
    block = build_ledger_block(workspace_id, rows, previous, now)
    block.save(force_insert=True)
    return block, {key: min(at, now) for _, _, at, key in rows if key is not None}


def list_rows_to_seal(workspace_id: int, last_id: int, settled_before: datetime) -> list[SealableRow]:
    entries = LedgerEntry.objects.in_workspace(workspace_id).filter(pk__gt=last_id).order_by("pk")
    rows = list(entries.values_list("pk", "seal", "at", "key_id")[:MAX_BLOCK_ROWS])
    # Stop at the first young row, even if older rows follow: a block must contain all rows of the workspace
    # between its first and last id.
    settled: list[SealableRow] = list(takewhile(lambda row: row[2] < settled_before, rows))
    if len(settled) == len(rows) or rows[len(settled)][2] <= settled_before + SETTLE_DELAY:
        return settled
    # The clock was ahead when this row was written, so its time does not tell its age.
    settled_id = observe_newest_row(workspace_id, settled_before + SETTLE_DELAY)
    return list(takewhile(lambda row: row[2] < settled_before or row[0] <= settled_id, rows))


def observe_newest_row(workspace_id: int, now: datetime) -> int:
    """Return the newest row id that was observed at least SETTLE_DELAY ago, and observe the newest one now.

    The age of rows with a wrong time is not known. A row that was there at the last observation is at least
    as old as that observation. Return 0 if there is no such observation.
    """
    cache_key = f"ledger-observation:{workspace_id}"
    observed_id, observed_at = cache.get(cache_key) or (0, now)
    if observed_id and now - SETTLE_DELAY < observed_at <= now:
        return 0
    entries = LedgerEntry.objects.in_workspace(workspace_id)
    newest_id = entries.order_by("-pk").values_list("pk", flat=True).first() or 0
    cache.set(cache_key, (newest_id, now), OBSERVATION_SECONDS)
    # An observation from the future, made before the clock was set back, is not used: it was replaced above.
    return observed_id if observed_at <= now - SETTLE_DELAY else 0


def build_ledger_block(
    workspace_id: int, rows: Sequence[SealableRow], previous: LedgerBlock | None, now: datetime
) -> LedgerBlock:
    block = LedgerBlock(
        workspace_id=workspace_id,
        sequence=previous.sequence + 1 if previous else 1,
        first_id=rows[0][0],
        last_id=rows[-1][0],
        count=len(rows),
        rows=ledger_rows_digest((number, seal) for number, seal, _, _ in rows),
        first_at=min(at for _, _, at, _ in rows),
        last_at=max(at for _, _, at, _ in rows),
        at=now,
        previous_hash=previous.hash if previous else "",
    )
    block.hash = build_block_row(block).hash(block.previous_hash)
    return block

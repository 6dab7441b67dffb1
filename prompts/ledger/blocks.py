"""Group ledger rows into blocks that form a hash chain.

A block contains a digest of its rows, so rows that are removed or inserted later are detected.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import takewhile

from django.db import transaction
from django.db.models import F, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from personas.api_keys.services import save_last_used
from personas.models import Workspace
from prompts.hashed_rows import build_block_row
from prompts.models import LedgerBlock, LedgerEntry
from prompts.proof import ledger_blocks as proof
from prompts.proof.hashed_rows import ledger_rows_digest

SETTLE_DELAY = proof.SETTLE_DELAY
MAX_BLOCK_ROWS = 10_000
# Per workspace and run of the job. A long backlog takes several runs.
MAX_BLOCKS_PER_RUN = 20
# Id, seal, time and key id of a ledger row.
SealableRow = tuple[int, str, datetime, int | None]


def list_workspaces_to_seal() -> list[int]:
    """List the workspaces with rows after their last block. Takes two index lookups per workspace."""
    blocks = LedgerBlock.unscoped.filter(workspace=OuterRef("pk")).order_by("-sequence")
    rows = LedgerEntry.unscoped.filter(workspace=OuterRef("pk")).order_by("-pk")
    workspaces = Workspace.objects.annotate(
        sealed=Coalesce(Subquery(blocks.values("last_id")[:1]), 0), newest=Subquery(rows.values("pk")[:1])
    )
    return list(workspaces.filter(newest__gt=F("sealed")).order_by("pk").values_list("pk", flat=True))


def seal_ledger(workspace_id: int) -> int:
    """Put all rows older than SETTLE_DELAY into blocks. Return the number of new blocks."""
    count = 0
    while count < MAX_BLOCKS_PER_RUN and seal_block(workspace_id) is not None:
        count += 1
    return count


@transaction.atomic
def seal_block(workspace_id: int) -> LedgerBlock | None:
    """Put the next rows into a block: in id order, up to the first row younger than SETTLE_DELAY."""
    # Lock the workspace, so that only one job at a time adds blocks to it. FOR NO KEY UPDATE does not block
    # inserts of rows that reference the workspace.
    Workspace.objects.select_for_update(no_key=True).get(pk=workspace_id)
    blocks = LedgerBlock.objects.in_workspace(workspace_id)
    previous = blocks.order_by("-sequence").first()
    now = timezone.now()
    rows = list_rows_to_seal(workspace_id, previous.last_id if previous else 0, now - SETTLE_DELAY)
    if not rows:
        return None
    block = build_ledger_block(workspace_id, rows, previous, now)
    block.save(force_insert=True)
    save_last_used(workspace_id, {key: at for _, _, at, key in rows if key is not None})
    return block


def list_rows_to_seal(workspace_id: int, last_id: int, settled_before: datetime) -> list[SealableRow]:
    entries = LedgerEntry.objects.in_workspace(workspace_id).filter(pk__gt=last_id).order_by("pk")
    rows = entries.values_list("pk", "seal", "at", "key_id")[:MAX_BLOCK_ROWS]
    # Stop at the first young row, even if older rows follow: a block must contain all rows of the workspace
    # between its first and last id.
    return list(takewhile(lambda row: row[2] < settled_before, rows))


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

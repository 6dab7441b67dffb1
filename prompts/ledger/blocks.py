"""Closes the ledger in blocks, each chained to the one before, so that no row can leave or join unseen."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import takewhile

from django.db import transaction
from django.db.models import F, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from personas.api_keys.services import save_last_used
from personas.models import Workspace
from prompts.hashed_rows import build_block_row
from prompts.models import LedgerBlock, LedgerEntry
from prompts.proof.hashed_rows import ledger_rows_digest

# Far longer than a statement may take: whoever has a smaller id has committed by then, or never will.
SETTLE_DELAY = timedelta(seconds=60)
MAX_BLOCK_ROWS = 10_000
# Per workspace and run: a long backlog is worked off over several.
MAX_BLOCKS_PER_RUN = 20
# Id, seal, time and key.
SealableRow = tuple[int, str, datetime, int | None]


def list_workspaces_to_seal() -> list[int]:
    """Those with rows behind their last block; two short looks at an index for each workspace."""
    blocks = LedgerBlock.unscoped.filter(workspace=OuterRef("pk")).order_by("-sequence")
    rows = LedgerEntry.unscoped.filter(workspace=OuterRef("pk")).order_by("-pk")
    found = Workspace.objects.annotate(
        sealed=Coalesce(Subquery(blocks.values("last_id")[:1]), 0), newest=Subquery(rows.values("pk")[:1])
    )
    return list(found.filter(newest__gt=F("sealed")).order_by("pk").values_list("pk", flat=True))


def seal_ledger(workspace_id: int) -> int:
    """Close all that has come to rest; how many blocks that made."""
    made = 0
    while made < MAX_BLOCKS_PER_RUN and seal_block(workspace_id) is not None:
        made += 1
    return made


@transaction.atomic
def seal_block(workspace_id: int) -> LedgerBlock | None:
    """Close the next rows, in the order of their ids, up to the first that is still too young."""
    # One at a time per workspace; not the whole lock, which would hold up everything that points there.
    Workspace.objects.select_for_update(no_key=True).get(pk=workspace_id)
    blocks = LedgerBlock.objects.in_workspace(workspace_id)
    before = blocks.order_by("-sequence").first()
    now = timezone.now()
    lines = list_rows_to_seal(workspace_id, before.last_id if before else 0, now - SETTLE_DELAY)
    if not lines:
        return None
    block = build_ledger_block(workspace_id, lines, before, now)
    block.save(force_insert=True)
    save_last_used(workspace_id, {key: at for _, _, at, key in lines if key is not None})
    return block


def list_rows_to_seal(workspace_id: int, last_id: int, until: datetime) -> list[SealableRow]:
    rows = LedgerEntry.objects.in_workspace(workspace_id).filter(pk__gt=last_id).order_by("pk")
    lines = rows.values_list("pk", "seal", "at", "key_id")[:MAX_BLOCK_ROWS]
    # No row is skipped, not even for a younger one before it: a block is all rows between its ends.
    return list(takewhile(lambda line: line[2] < until, lines))


def build_ledger_block(
    workspace_id: int, lines: Sequence[SealableRow], before: LedgerBlock | None, now: datetime
) -> LedgerBlock:
    block = LedgerBlock(
        workspace_id=workspace_id,
        sequence=before.sequence + 1 if before else 1,
        first_id=lines[0][0],
        last_id=lines[-1][0],
        count=len(lines),
        rows=ledger_rows_digest((number, seal) for number, seal, _, _ in lines),
        first_at=min(at for _, _, at, _ in lines),
        last_at=max(at for _, _, at, _ in lines),
        at=now,
        previous_hash=before.hash if before else "",
    )
    block.hash = build_block_row(block).hash(block.previous_hash)
    return block

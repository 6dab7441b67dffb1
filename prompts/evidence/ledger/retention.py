"""Ledger retention: delete the rows of blocks past the retention period, oldest block first.

Each block is deleted as a whole, and a LedgerExpiry record of the deletion is kept.
"""

from datetime import datetime

import structlog
from django.db import transaction
from django.db.models import Min, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from personas.actors import SYSTEM_ACTOR, Actor
from personas.audit.services import write_audit_event
from personas.errors import InvalidInput
from personas.models import Workspace
from personas.tenancy.lost_nodes import lock_workspace
from prompts.models import LedgerBlock, LedgerEntry, LedgerExpiry
from prompts.proof_rows import build_expiry_row

log = structlog.get_logger(__name__)

MIN_MONTHS = 6
DELETE_BATCH_SIZE = 2_000
# Per workspace and per run, so that other jobs are not delayed.
MAX_BLOCKS_PER_RUN = 20


@transaction.atomic
def set_ledger_retention(workspace: Workspace, months: int, *, by: Actor) -> Workspace:
    """Set how many months the workspace keeps its ledger."""
    if not MIN_MONTHS <= months <= 1_200:
        raise InvalidInput.on(
            "ledger_months",
            _("Enter a retention period from %(months)s to 1,200 months.") % {"months": MIN_MONTHS},
        )
    workspace = lock_workspace(workspace.pk)
    before, workspace.ledger_months = workspace.ledger_months, months
    workspace.save(update_fields=["ledger_months"])
    if before != months:
        changes = {"before": {"ledger_months": before}, "after": {"ledger_months": months}}
        write_audit_event(
            workspace, "changed retention", "workspace", workspace.pk, workspace.name, by=by, **changes
        )
    return workspace


def list_workspaces_to_expire(now: datetime) -> list[int]:
    """List the workspaces with a block that is past the retention period and not deleted yet."""
    kept = LedgerBlock.unscoped.filter(expiry=None)
    oldest = kept.values("workspace", "workspace__ledger_months").annotate(at=Min("last_at"))
    rows = oldest.order_by("workspace").values_list("workspace", "workspace__ledger_months", "at")
    return [workspace for workspace, months, at in rows if at < subtract_months(now, months)]


def expire_blocks(workspace_id: int, now: datetime | None = None) -> int:
    """Delete the rows of blocks past the retention period. Return the number of these blocks."""
    now, count = now or timezone.now(), 0
    while count < MAX_BLOCKS_PER_RUN and expire_oldest_block(workspace_id, now) is not None:
        count += 1
    return count


@transaction.atomic
def expire_oldest_block(workspace_id: int, now: datetime) -> LedgerExpiry | None:
    """Delete the rows of the oldest block, if it is past the retention period, and record the deletion.

    Both happen in one transaction, so verification sees either all rows of the block or none.
    """
    workspace = lock_workspace(workspace_id)
    months = max(workspace.ledger_months, MIN_MONTHS)
    blocks = LedgerBlock.objects.in_workspace(workspace_id).filter(expiry=None)
    block = blocks.order_by("sequence").first()
    if block is None or block.last_at >= subtract_months(now, months):
        return None
    rows = list_block_entries(block)
    if rows.count() != block.count:
        # Rows were removed or inserted after the block was sealed. Keep it, so that it can be investigated.
        log.error("ledger_block_mismatch_found", workspace=workspace_id, block=block.sequence)
        return None
    expiry = build_expiry(block, months, now)
    expiry.save(force_insert=True)
    while ids := list(rows.values_list("pk", flat=True)[:DELETE_BATCH_SIZE]):
        # Delete in batches to stay below the statement timeout: a trigger checks every row, which is slow.
        list_block_entries(block).filter(pk__lte=ids[-1]).order_by().delete()
    after = {"rows": block.count, "first_id": block.first_id, "last_id": block.last_id, "months": months}
    write_audit_event(workspace_id, "expired", "ledger", block.pk, str(block), by=SYSTEM_ACTOR, after=after)
    return expiry


def build_expiry(block: LedgerBlock, months: int, now: datetime) -> LedgerExpiry:
    """Build the record of the deletion. Its hash includes the hash of the previous block's record."""
    expiries = LedgerExpiry.objects.in_workspace(block.workspace_id)
    before = expiries.filter(block__sequence=block.sequence - 1).values_list("hash", flat=True).first()
    expiry = LedgerExpiry(
        workspace_id=block.workspace_id,
        block=block,
        first_id=block.first_id,
        last_id=block.last_id,
        months=months,
        at=now,
        previous_hash=before or "",
    )
    expiry.hash = build_expiry_row(expiry, block.sequence).hash(expiry.previous_hash)
    return expiry


def list_block_entries(block: LedgerBlock) -> QuerySet[LedgerEntry]:
    rows = LedgerEntry.objects.in_workspace(block.workspace_id)
    # The ids would be enough. The times let PostgreSQL scan only the partitions that can contain the block.
    rows = rows.filter(at__gte=block.first_at, at__lte=block.last_at)
    return rows.filter(pk__gte=block.first_id, pk__lte=block.last_id).order_by("pk")


def subtract_months(now: datetime, months: int) -> datetime:
    """Return the same day and time `months` earlier, or the last day of that month if it is shorter."""
    years, month = divmod(now.year * 12 + now.month - 1 - months, 12)
    for day in range(now.day, 0, -1):
        try:
            return now.replace(year=years, month=month + 1, day=day)
        except ValueError:
            continue
    raise AssertionError("Every month has a first day.")

"""Lets old rows of the ledger go: whole blocks, oldest first, each with a note that stays."""

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
from prompts.hashed_rows import build_roll_off_row
from prompts.models import LedgerBlock, LedgerEntry, LedgerRollOff

log = structlog.get_logger(__name__)

MIN_MONTHS = 6
DELETE_BATCH_SIZE = 2_000
# Per workspace and run: other jobs want their turn.
MAX_BLOCKS_PER_RUN = 20


@transaction.atomic
def set_ledger_retention(workspace: Workspace, months: int, *, by: Actor) -> Workspace:
    """Say how many months the workspace keeps its ledger."""
    if not MIN_MONTHS <= months <= 1_200:
        raise InvalidInput.on(
            "ledger_months", _("The ledger is kept for %(months)s months at least.") % {"months": MIN_MONTHS}
        )
    workspace = Workspace.objects.select_for_update(no_key=True).get(pk=workspace.pk)
    before, workspace.ledger_months = workspace.ledger_months, months
    workspace.save(update_fields=["ledger_months"])
    if before != months:
        said = {"before": {"ledger_months": before}, "after": {"ledger_months": months}}
        write_audit_event(
            workspace, "changed retention", "workspace", workspace.pk, workspace.name, by=by, **said
        )
    return workspace


def list_workspaces_to_expire(now: datetime) -> list[int]:
    """Those whose oldest block that is still there has outlived the workspace's months."""
    kept = LedgerBlock.unscoped.filter(roll_off=None)
    oldest = kept.values("workspace", "workspace__ledger_months").annotate(at=Min("last_at"))
    rows = oldest.order_by("workspace").values_list("workspace", "workspace__ledger_months", "at")
    return [workspace for workspace, months, at in rows if at < subtract_months(now, months)]


def expire_blocks(workspace_id: int, now: datetime | None = None) -> int:
    """Let every block go whose time is over; how many that were."""
    now, gone = now or timezone.now(), 0
    while gone < MAX_BLOCKS_PER_RUN and expire_oldest_block(workspace_id, now) is not None:
        gone += 1
    return gone


@transaction.atomic
def expire_oldest_block(workspace_id: int, now: datetime) -> LedgerRollOff | None:
    """The oldest block that is still there, rows and note in one: verification sees it whole or gone."""
    workspace = Workspace.objects.select_for_update(no_key=True).get(pk=workspace_id)
    months = max(workspace.ledger_months, MIN_MONTHS)
    blocks = LedgerBlock.objects.in_workspace(workspace_id).filter(roll_off=None)
    block = blocks.order_by("sequence").first()
    if block is None or block.last_at >= subtract_months(now, months):
        return None
    rows = list_block_entries(block)
    if rows.count() != block.count:
        # Somebody should look at it first; with the rows gone nobody could.
        log.error("ledger_block_mismatch_found", workspace=workspace_id, block=block.sequence)
        return None
    note = build_roll_off(block, months, now)
    note.save(force_insert=True)
    while ids := list(rows.values_list("pk", flat=True)[:DELETE_BATCH_SIZE]):
        # In batches, so that no one statement runs into its limit; the database checks each row for itself.
        list_block_entries(block).filter(pk__lte=ids[-1]).order_by().delete()
    after = {"rows": block.count, "first_id": block.first_id, "last_id": block.last_id, "months": months}
    write_audit_event(
        workspace_id, "rolled off", "ledger", block.pk, str(block), by=SYSTEM_ACTOR, after=after
    )
    return note


def build_roll_off(block: LedgerBlock, months: int, now: datetime) -> LedgerRollOff:
    """The note that stays, chained to the one before it."""
    notes = LedgerRollOff.objects.in_workspace(block.workspace_id)
    before = notes.filter(block__sequence=block.sequence - 1).values_list("hash", flat=True).first()
    note = LedgerRollOff(
        workspace_id=block.workspace_id,
        block=block,
        first_id=block.first_id,
        last_id=block.last_id,
        months=months,
        at=now,
        previous_hash=before or "",
    )
    note.hash = build_roll_off_row(note, block.sequence).hash(note.previous_hash)
    return note


def list_block_entries(block: LedgerBlock) -> QuerySet[LedgerEntry]:
    rows = LedgerEntry.objects.in_workspace(block.workspace_id)
    # By time as well, so that only the months it was closed over are looked at.
    rows = rows.filter(at__gte=block.first_at, at__lte=block.last_at)
    return rows.filter(pk__gte=block.first_id, pk__lte=block.last_id).order_by("pk")


def subtract_months(now: datetime, months: int) -> datetime:
    """The same day so many months earlier; the last of a shorter month."""
    years, month = divmod(now.year * 12 + now.month - 1 - months, 12)
    for day in range(now.day, 0, -1):
        try:
            return now.replace(year=years, month=month + 1, day=day)
        except ValueError:
            continue
    raise AssertionError("Every month has a first day.")

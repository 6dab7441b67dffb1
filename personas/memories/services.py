"""Create memories and change their status: approve, reject, supersede, revoke, reinstate."""

from django.utils import timezone
from django.utils.translation import gettext as _

from core.db.before_commit import atomic_with_hooks
from personas.actors import Actor
from personas.errors import DomainError
from personas.events.services import record_event
from personas.models import Memory, MemoryStatus, Workspace
from personas.records.services import FieldValues, create_record, edit_record, lock_record

# Audit action for a memory that a bot creates as active.
UNAPPROVED_VERB = "created without approval"


@atomic_with_hooks()
def create_memory(workspace: Workspace, values: FieldValues, *, by: Actor, message: str = "") -> Memory:
    """Create a memory. If a bot creates it, its status is proposed, so a user must approve it.

    A bot whose key has the action `activate` creates active memories. The audit log shows these with a verb
    of their own.
    """
    if not can_activate_memories(by):
        values = values | {"status": MemoryStatus.PROPOSED}
    status = values.get("status", MemoryStatus.ACTIVE)
    verb = UNAPPROVED_VERB if by.is_bot and status == MemoryStatus.ACTIVE else "created"
    authored = values | {"author": by.user, "author_label": by.label}
    memory = create_record(Memory, workspace, authored, by=by, message=message, verb=verb)
    if memory.status == MemoryStatus.PROPOSED:
        record_memory_event(memory, "memory.proposed", by=by)
    return memory


def can_activate_memories(actor: Actor) -> bool:
    """Whether the actor may create active memories. Bots propose them, unless their key has `activate`."""
    return not actor.is_bot or actor.can_activate_memories


@atomic_with_hooks()
def approve_memory(memory: Memory, *, by: Actor) -> Memory:
    """Make a proposed memory active, so that it reaches prompts."""
    memory = lock_record(memory)
    if memory.status != MemoryStatus.PROPOSED:
        raise DomainError(
            _("Only proposed memories can be approved. This one is %(status)s.")
            % {"status": memory.get_status_display().lower()}
        )
    memory = _change_status(memory, MemoryStatus.ACTIVE, by=by, verb="approved")
    record_memory_event(memory, "memory.approved", by=by)
    return memory


@atomic_with_hooks()
def reject_memory(memory: Memory, *, by: Actor) -> Memory:
    """Revoke a proposed memory.

    Raise DomainError for a memory with another status. Rejecting requires only approve permission, while
    revoking an active memory requires edit permission.
    """
    memory = lock_record(memory)
    if memory.status != MemoryStatus.PROPOSED:
        raise DomainError(
            _("Only proposed memories can be rejected. This one is %(status)s.")
            % {"status": memory.get_status_display().lower()}
        )
    memory = revoke_memory(memory, by=by)
    record_memory_event(memory, "memory.rejected", by=by)
    return memory


@atomic_with_hooks()
def supersede_memory(memory: Memory, successor: Memory, *, by: Actor) -> Memory:
    """Mark a memory as superseded by `successor`, which must be active. Neither memory is deleted."""
    memory = lock_record(memory)
    if memory.pk == successor.pk:
        raise DomainError(_("A memory cannot replace itself."))
    if memory.status not in {MemoryStatus.ACTIVE, MemoryStatus.PROPOSED}:
        raise DomainError(
            _("This memory is already %(status)s.") % {"status": memory.get_status_display().lower()}
        )
    if successor.status != MemoryStatus.ACTIVE:
        raise DomainError(_("Only an active memory can replace another."))
    values = {"status": MemoryStatus.SUPERSEDED, "superseded_by": successor}
    # Name the successor by id: its text would stay in this memory's history when the successor is erased.
    message = f"Replaced by memory {successor.pk}"
    return edit_record(memory, values, expected=memory.revision, by=by, message=message, verb="superseded")


@atomic_with_hooks()
def revoke_memory(memory: Memory, *, by: Actor) -> Memory:
    """Exclude a memory from future prompts. The row is archived, not deleted."""
    memory = lock_record(memory)
    if memory.status == MemoryStatus.REVOKED:
        return memory
    memory.archived_at = timezone.now()
    memory.save(update_fields=["archived_at"])
    return _change_status(memory, MemoryStatus.REVOKED, by=by, verb="revoked")


@atomic_with_hooks()
def reinstate_memory(memory: Memory, *, by: Actor) -> Memory:
    """Make a revoked or superseded memory active again."""
    memory = lock_record(memory)
    if memory.status not in {MemoryStatus.REVOKED, MemoryStatus.SUPERSEDED}:
        raise DomainError(_("Only revoked or superseded memories can be reinstated."))
    memory.archived_at = None
    memory.save(update_fields=["archived_at"])
    return _change_status(memory, MemoryStatus.ACTIVE, by=by, verb="reinstated")


def record_memory_event(memory: Memory, name: str, *, by: Actor) -> None:
    record_event(memory.workspace_id, name, {"memory_id": memory.pk, "revision": memory.revision}, by=by)


def _change_status(memory: Memory, status: MemoryStatus, *, by: Actor, verb: str) -> Memory:
    values: FieldValues = {"status": status, "superseded_by": None}
    message = f"{verb.capitalize()} memory {memory.pk}"
    return edit_record(memory, values, expected=memory.revision, by=by, message=message, verb=verb)

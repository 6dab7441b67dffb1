"""Services shared by all records: create, edit, archive, restore from the archive, restore a revision."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from core.db.before_commit import atomic_with_hooks
from core.db.fast import WriteBatch
from core.text.lists import format_short_list
from personas.actors import Actor
from personas.audit.services import audit_record_change
from personas.errors import EditConflict, InvalidInput, RecordErased, RecordInUse
from personas.events.services import record_event
from personas.models import Agent, Erasure, Record, Revision, Workspace
from personas.records.fast_write import get_lock_query, is_locked, start_write
from personas.records.review_policy import check_review_lift, is_review_lifted, record_review_lift
from personas.records.revisions import build_revision
from personas.signals import agent_changed

R = TypeVar("R", bound=Record)
FieldValues = dict[str, Any]
ERASABLE_KINDS = ("memory", "user_profile")


@atomic_with_hooks()
def create_record(
    model: type[R],
    workspace: Workspace,
    values: FieldValues,
    *,
    by: Actor,
    message: str = "",
    verb: str = "created",
) -> R:
    """Create a record and its first revision. `verb` is the action in the audit log.

    An agent without a release policy gets the default of the workspace. One that is not reviewed although
    this is the default needs what lifting a review needs: see `check_review_lift`.
    """
    default, reason = workspace.default_release_policy, ""
    if issubclass(model, Agent):
        reason = check_review_lift(workspace, "release_policy", default, values, by=by)
        values = {"release_policy": default, **values}
    non_content = {name: value for name, value in values.items() if name not in model.content}
    field_names = {field.name for field in model._meta.concrete_fields}
    record = model(
        workspace=workspace, **{name: value for name, value in non_content.items() if name in field_names}
    )
    saved = _save_record(record, values, before=None, verb=verb, by=by, message=message)
    if reason and isinstance(saved, Agent):
        record_review_lift(saved, reason, by=by)
    return saved


@atomic_with_hooks()
def edit_record(
    record: R, values: FieldValues, *, expected: int, by: Actor, message: str = "", verb: str = "edited"
) -> R:
    """Change a record's content with optimistic locking.

    `expected` is the revision number that the edit is based on. Raise `EditConflict` if another change has
    been saved since. To lift the review of an agent, `values` must contain the `reason`.
    """
    record = lock_record(record)
    check_not_erased(record)
    if record.revision != expected:
        raise EditConflict(record, expected)
    reason = ""
    if isinstance(record, Agent):
        policy = record.release_policy
        reason = check_review_lift(record.workspace_id, "release_policy", policy, values, by=by)
    saved = _save_record(record, values, before=record.snapshot(), verb=verb, by=by, message=message)
    if reason and isinstance(saved, Agent):
        record_review_lift(saved, reason, by=by)
    return saved


@atomic_with_hooks()
def archive_record(record: R, *, by: Actor) -> R:
    """Archive a record: prompts no longer use it, but it is kept and can be restored."""
    record = lock_record(record)
    if record.is_archived:
        return record
    check_not_in_use(record)
    affected_ids = record.agent_ids()
    record.archived_at = timezone.now()
    return _save_archived_state(record, "archived", affected_ids, by=by)


@atomic_with_hooks()
def restore_record(record: R, *, by: Actor) -> R:
    """Make an archived record active again."""
    record = lock_record(record)
    if not record.is_archived:
        return record
    check_not_erased(record)
    record.archived_at = None
    with convert_save_errors():
        record.full_clean()
    return _save_archived_state(record, "restored", record.agent_ids(), by=by)


@atomic_with_hooks()
def restore_revision(record: R, number: int, *, expected: int, by: Actor) -> R:
    """Copy the content of revision `number` to the record. This is saved as a new revision.

    A review is a protection and not part of the content: an agent that is reviewed stays reviewed.
    """
    check_not_erased(record)
    revision = get_revision(record, number)
    values = record.values_from_snapshot(revision.data)
    if isinstance(record, Agent) and "release_policy" in values:
        policy = lock_record(record).release_policy
        if is_review_lifted(policy, values["release_policy"]):
            values["release_policy"] = policy
    message = f"Restored revision {number}"
    return edit_record(record, values, expected=expected, by=by, message=message, verb="reverted")


def get_revision(record: Record, number: int) -> Revision:
    revisions = Revision.objects.in_workspace(record.workspace_id)
    return revisions.get(kind=record.kind, object_id=record.pk, number=number)


def lock_record(record: R) -> R:
    """Reload the record with SELECT … FOR UPDATE; the row lock is held until the transaction ends.

    A record that was locked when it was loaded in this transaction is returned as it is.
    """
    if is_locked(record):
        return record
    rows = get_lock_query(type(record))(record.workspace_id, record.pk)
    if not rows:
        raise type(record).DoesNotExist(f"{record.kind} {record.pk} not found.")
    locked: R = rows[0]
    if type(record).workspace.is_cached(record):
        locked.workspace = record.workspace
    return locked


def check_not_erased(record: Record) -> None:
    """Raise RecordErased if the record's content was erased (deleted for good, in all revisions)."""
    if record.kind not in ERASABLE_KINDS:
        return
    rows = Erasure.objects.in_workspace(record.workspace_id).filter(kind=record.kind, object_id=record.pk)
    if rows.exists():
        raise RecordErased(_("The text of this record was erased. Create a new record instead."))


def check_not_in_use(record: Record) -> None:
    """Raise RecordInUse if an active agent uses the record, because such a record cannot be archived."""
    if record.kind not in {"agent", "identity", "soul", "user_profile", "channel", "tool", "source"}:
        return
    others = [pk for pk in record.agent_ids() if record.kind != "agent" or pk != record.pk]
    users = Agent.objects.in_workspace(record.workspace_id).filter(pk__in=others, archived_at=None)
    names = list(users.values_list("name", flat=True))
    if names:
        raise RecordInUse(
            _("In use by %(names)s. Remove it there first.") % {"names": format_short_list(names)}
        )


@contextmanager
def convert_save_errors(*, has_savepoint: bool = True) -> Iterator[None]:
    """Convert validation and integrity errors to `InvalidInput`.

    The block runs in a savepoint, so that the outer transaction can continue after a database error. Without
    it, the outer transaction must end.
    """
    try:
        with transaction.atomic() if has_savepoint else nullcontext():
            yield
    except ValidationError as error:
        raise InvalidInput.from_validation(error) from error
    except IntegrityError as error:
        message = _("This name or position has just been taken. Reload the page and try again.")
        raise InvalidInput.on(NON_FIELD_ERRORS, message) from error


def _save_record(
    record: R, values: FieldValues, *, before: FieldValues | None, verb: str, by: Actor, message: str
) -> R:
    write = start_write(record, values, is_new=before is None)
    record.set_values(values)
    record.revision, record.updated_at = record.revision + 1, timezone.now()
    with convert_save_errors(has_savepoint=write.needs_savepoint):
        write.save()
    _clear_prefetch_cache(record)
    after = record.snapshot()
    if after == before:
        write.reset_revision()
        return record
    revision = build_revision(record, by=by, message=message)
    Revision.objects.insert([revision], batch=write.batch)
    audit_record_change(record, verb, by=by, before=before, after=after, batch=write.batch)
    record_change_event(record, verb, batch=write.batch)
    with convert_save_errors(has_savepoint=False):
        write.send_batch()
    affected_ids = write.list_affected_agents(before, after)
    if record.can_change_prompts(before, after):
        _send_agent_changed(record, affected_ids, revision, by=by)
    return record


def _save_archived_state(record: R, verb: str, affected_ids: list[int], *, by: Actor) -> R:
    state = {"archived": record.is_archived}
    record.updated_at = timezone.now()
    record.save(update_fields=["archived_at", "updated_at"])
    audit_record_change(record, verb, by=by, before={"archived": not record.is_archived}, after=state)
    record_change_event(record, verb)
    _send_agent_changed(record, [*affected_ids, *record.agent_ids()], None, by=by)
    return record


def record_change_event(record: Record, verb: str, *, batch: WriteBatch | None = None) -> None:
    data = {
        "kind": record.kind,
        "id": record.pk,
        "revision": record.revision,
        "action": verb.replace(" ", "_"),
    }
    record_event(record.workspace_id, "record.changed", data, batch=batch)


def _send_agent_changed(
    record: Record, affected_ids: list[int], cause: Revision | None, *, by: Actor
) -> None:
    agent_ids = sorted(set(affected_ids))
    if agent_ids:
        agent_changed.send(
            sender=type(record), workspace_id=record.workspace_id, agent_ids=agent_ids, cause=cause, by=by
        )


def _clear_prefetch_cache(record: Record) -> None:
    record._prefetched_objects_cache = {}  # type: ignore[attr-defined]  # else snapshot() would show the old ones

"""Removes a record's personal words from everything that keeps them, and leaves a tombstone."""

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from personas.actors import Actor
from personas.audit.services import write_audit_event
from personas.drafts.services import delete_drafts_containing
from personas.errors import DomainError, InvalidInput
from personas.models import (
    AuditEvent,
    Content,
    Erasure,
    KeptAnswer,
    Memory,
    MemoryState,
    Record,
    Revision,
    UserProfile,
)
from personas.records.services import lock_record
from personas.signals import agent_changed

ERASED_TEXT = "[erased]"
# What takes the place of a revision's data or an event's before and after.
TOMBSTONE = {"erased": True}
# The words of each kind that can be erased; the others hold no personal data of the people spoken to.
ERASABLE_FIELDS: dict[type[Record], tuple[str, ...]] = {
    Memory: ("text", "source"),
    UserProfile: ("label", "name", "timezone", "location", "notes", "extra"),
}
ERASED_VALUES = {Memory: {"text": ERASED_TEXT}, UserProfile: {"label": ERASED_TEXT}}

# The word in their addresses, and what stands for one of them there: drafts are kept under these.
DRAFT_KEYS: dict[type[Record], tuple[str, str]] = {
    Memory: ("memories", "pk"),
    UserProfile: ("user-profiles", "slug"),
}
# Shorter words stand in too many texts that are nobody's.
MIN_TEXT_LENGTH = 4


class NotErasable(DomainError):
    """A kind of record that holds nobody's personal data."""

    code = "not_erasable"


@transaction.atomic
def erase_record_text(record: Record, *, reason: str, by: Actor) -> Erasure:
    """Blank the record and its history; what prompts kept of it goes by the tombstone, in `prompts`."""
    if type(record) not in ERASABLE_FIELDS:
        raise NotErasable(_("Only memories and user profiles can be erased."))
    if not reason.strip():
        raise InvalidInput.on("reason", _("Say why: the tombstone keeps it."))
    record = lock_record(record)
    # Answers kept for retries may hold the words, and do not say whose they are.
    KeptAnswer.objects.in_workspace(record.workspace_id).delete()
    family, key = DRAFT_KEYS[type(record)]
    delete_drafts_containing(
        record.workspace_id, family, str(getattr(record, key)), list_personal_texts(record)
    )
    fed = record.agent_ids()
    tomb, _is_new = Erasure.objects.in_workspace(record.workspace_id).get_or_create(
        kind=record.kind,
        object_id=record.pk,
        defaults={
            "workspace_id": record.workspace_id,
            "reason": reason.strip()[:500],
            "person": by.user,
            "person_label": by.label,
        },
    )
    blank_record(record)
    blank_history(record)
    write_audit_event(
        record.workspace_id,
        "erased",
        record.kind,
        record.pk,
        ERASED_TEXT,
        by=by,
        after={"reason": tomb.reason},
    )
    if fed:
        agent_changed.send(sender=type(record), workspace_id=record.workspace_id, agent_ids=fed, cause=None)
    return tomb


def list_personal_texts(record: Record) -> list[str]:
    """What must not be found any more, as it stands in the record now."""
    values = [
        getattr(record, name)
        for name in ERASABLE_FIELDS.get(type(record), ())
        if name not in {"timezone", "extra"}
    ]
    return [value for value in values if len(value) >= MIN_TEXT_LENGTH]


def blank_record(record: Record) -> None:
    """The row stays, out of use and without its words."""
    values: dict[str, Any] = dict.fromkeys(ERASABLE_FIELDS[type(record)], "") | ERASED_VALUES[type(record)]
    if isinstance(record, Memory):
        values |= {"state": MemoryState.REVOKED, "superseded_by": None}
    for name, value in values.items():
        setattr(record, name, value)
    record.revision += 1
    record.updated_at = timezone.now()
    if record.archived_at is None:
        record.archived_at = record.updated_at
    record.save()


def blank_history(record: Record) -> None:
    """Allowed by the database only where a tombstone stands, and only to this tombstone."""
    revisions = Revision.objects.in_workspace(record.workspace_id)
    revisions.filter(kind=record.kind, object_id=record.pk).update(data=TOMBSTONE, message="")
    events = AuditEvent.objects.in_workspace(record.workspace_id).filter(
        kind=record.kind, object_id=record.pk
    )
    events.update(before=TOMBSTONE, after=TOMBSTONE, object_label=ERASED_TEXT)


def erase_contents(workspace_id: int, digests: Iterable[str]) -> int:
    """Remove what stands behind these digests; the digests stay."""
    rows = Content.objects.in_workspace(workspace_id).filter(digest__in=list(digests), erased_at=None)
    return rows.update(data=None, erased_at=timezone.now())

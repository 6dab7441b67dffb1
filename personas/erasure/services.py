"""Erase the personal data of a record and of its history. A tombstone records who erased it and why."""

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
# Value that replaces the data of revisions, and the values before and after in audit events.
TOMBSTONE = {"erased": True}
# Fields to erase, by kind of record. Other kinds hold no personal data of the users that agents talk to.
ERASABLE_FIELDS: dict[type[Record], tuple[str, ...]] = {
    Memory: ("text", "source"),
    UserProfile: ("label", "name", "timezone", "location", "notes", "extra"),
}
ERASED_VALUES = {Memory: {"text": ERASED_TEXT}, UserProfile: {"label": ERASED_TEXT}}

# URL segment and lookup field of each kind of record. They identify the drafts of a record.
DRAFT_KEYS: dict[type[Record], tuple[str, str]] = {
    Memory: ("memories", "pk"),
    UserProfile: ("user-profiles", "slug"),
}
# Characters. Drafts are not searched for shorter texts, because these occur in too many unrelated drafts.
MIN_TEXT_LENGTH = 4


class NotErasable(DomainError):
    """The record cannot be erased, because its kind holds no personal data."""

    code = "not_erasable"


@transaction.atomic
def erase_record_text(record: Record, *, reason: str, by: Actor) -> Erasure:
    """Erase the personal text of a record, its history and its drafts, and return the tombstone.

    Prompt versions are not changed here; the app `prompts` erases the text from them.
    """
    if type(record) not in ERASABLE_FIELDS:
        raise NotErasable(_("Only memories and user profiles can be erased."))
    if not reason.strip():
        raise InvalidInput.on("reason", _("Say why: the tombstone keeps it."))
    record = lock_record(record)
    # Delete all stored responses of requests with an Idempotency-Key: they may contain the text, and do not
    # tell which record they are about.
    KeptAnswer.objects.in_workspace(record.workspace_id).delete()
    family, key = DRAFT_KEYS[type(record)]
    delete_drafts_containing(
        record.workspace_id, family, str(getattr(record, key)), list_personal_texts(record)
    )
    agent_ids = record.agent_ids()
    erasure, _is_new = Erasure.objects.in_workspace(record.workspace_id).get_or_create(
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
        after={"reason": erasure.reason},
    )
    if agent_ids:
        agent_changed.send(
            sender=type(record), workspace_id=record.workspace_id, agent_ids=agent_ids, cause=None
        )
    return erasure


def list_personal_texts(record: Record) -> list[str]:
    """Return the personal texts of a record. Drafts that contain one of them are deleted."""
    values = [
        getattr(record, name)
        for name in ERASABLE_FIELDS.get(type(record), ())
        if name not in {"timezone", "extra"}
    ]
    return [value for value in values if len(value) >= MIN_TEXT_LENGTH]


def blank_record(record: Record) -> None:
    """Archive the record and remove its personal text."""
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
    """Replace the data in the record's revisions and audit events by TOMBSTONE.

    Both tables are append-only. Their database triggers allow only this update, and only if an Erasure exists
    for the record.
    """
    revisions = Revision.objects.in_workspace(record.workspace_id)
    revisions.filter(kind=record.kind, object_id=record.pk).update(data=TOMBSTONE, message="")
    events = AuditEvent.objects.in_workspace(record.workspace_id).filter(
        kind=record.kind, object_id=record.pk
    )
    events.update(before=TOMBSTONE, after=TOMBSTONE, object_label=ERASED_TEXT)


def erase_contents(workspace_id: int, digests: Iterable[str]) -> int:
    """Erase the data of the contents with these digests. The rows and their digests stay."""
    rows = Content.objects.in_workspace(workspace_id).filter(digest__in=list(digests), erased_at=None)
    return rows.update(data=None, erased_at=timezone.now())

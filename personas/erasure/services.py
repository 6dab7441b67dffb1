"""Erase the personal data of a record and of its history. A tombstone records who erased it and why."""

import json
from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from personas.actors import Actor
from personas.audit.services import write_audit_event
from personas.contents.models import erase_content_rows
from personas.drafts.services import delete_drafts_containing
from personas.errors import DomainError, InvalidInput
from personas.models import (
    AuditEvent,
    Content,
    Erasure,
    IdempotentResponse,
    Memory,
    MemoryStatus,
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
    UserProfile: ("name", "display_name", "timezone", "location", "notes", "extra"),
}
ERASED_VALUES = {Memory: {"text": ERASED_TEXT}, UserProfile: {"name": ERASED_TEXT}}

# URL segment and lookup field of each kind of record. They identify the drafts of a record.
DRAFT_KEYS: dict[type[Record], tuple[str, str]] = {
    Memory: ("memories", "pk"),
    UserProfile: ("user-profiles", "slug"),
}
# Status of a stored response whose text was erased.
ERASED_STATUS = 410
# Drafts, comments, contents and call data are not searched for texts with fewer characters, because these
# occur in too many unrelated places.
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
        raise InvalidInput.on("reason", _("A reason is required. It is kept in the erasure record."))
    record = lock_record(record)
    texts = list_all_texts(record)
    blank_stored_responses(record.workspace_id, texts)
    family, key = DRAFT_KEYS[type(record)]
    delete_drafts_containing(
        record.workspace_id, family, str(getattr(record, key)), list_searchable_texts(texts)
    )
    agent_ids = record.agent_ids()
    erasure, _is_new = Erasure.objects.in_workspace(record.workspace_id).get_or_create(
        kind=record.kind,
        object_id=record.pk,
        defaults={
            "workspace_id": record.workspace_id,
            "reason": reason.strip()[:500],
            "person": by.user,
            "author_label": by.label,
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
            sender=type(record), workspace_id=record.workspace_id, agent_ids=agent_ids, cause=None, by=by
        )
    return erasure


def list_personal_texts(record: Record) -> list[str]:
    """Return the personal texts of a record and of its revisions that other texts are searched for."""
    return list_searchable_texts(list_all_texts(record))


def list_searchable_texts(texts: Iterable[str]) -> list[str]:
    """Leave out the texts that are too short to be searched for."""
    return [text for text in texts if len(text) >= MIN_TEXT_LENGTH]


def list_all_texts(record: Record) -> list[str]:
    """Return the personal texts of a record and of all its revisions, each once."""
    names = [name for name in ERASABLE_FIELDS.get(type(record), ()) if name not in {"timezone", "extra"}]
    revisions = Revision.objects.in_workspace(record.workspace_id).filter(
        kind=record.kind, object_id=record.pk
    )
    snapshots = [record.snapshot(), *revisions.order_by("number").values_list("data", flat=True)]
    values = [data.get(name) for data in snapshots for name in names]
    return list(dict.fromkeys([value for value in values if isinstance(value, str) and value]))


def blank_stored_responses(workspace_id: int, texts: Iterable[str]) -> None:
    """Replace stored responses of requests with an Idempotency-Key that contain one of the texts by stubs.

    The stub stays, so that a retry of the request does not create a second record. It has no digest of the
    request body, because short texts can be guessed from their digests.
    """
    needles = build_response_needles(texts)
    rows = IdempotentResponse.objects.in_workspace(workspace_id)
    matches = [
        key
        for key, headers, body in rows.values_list("pk", "headers", "body").iterator(chunk_size=500)
        if any(needle in json.dumps(headers).encode() + bytes(body) for needle in needles)
    ]
    rows.filter(pk__in=matches).update(status=ERASED_STATUS, headers={}, body=b"", body_digest="")


def build_response_needles(texts: Iterable[str]) -> set[bytes]:
    """Return the lines of the texts as bytes: plain, and as they occur in JSON strings.

    Lines and not whole texts, because a response may contain a text with other line breaks or an indent.
    """
    lines = {line.strip() for text in texts for line in text.splitlines()} - {""}
    encoded = {json.dumps(line, ensure_ascii=is_ascii)[1:-1] for line in lines for is_ascii in (True, False)}
    return {line.encode() for line in lines | encoded}


def blank_record(record: Record) -> None:
    """Archive the record and remove its personal text."""
    values: dict[str, Any] = dict.fromkeys(ERASABLE_FIELDS[type(record)], "") | ERASED_VALUES[type(record)]
    if isinstance(record, Memory):
        values |= {"status": MemoryStatus.REVOKED, "superseded_by": None}
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
    """Erase data and salts of the contents with these digests. The rows and their digests stay."""
    return erase_content_rows(Content.objects.in_workspace(workspace_id).filter(digest__in=list(digests)))

"""Store, apply and delete drafts: unsaved form values that only the member who entered them sees."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from core.db.batch_delete import delete_in_batches
from personas.actors import Actor
from personas.errors import DomainError
from personas.models import Agent, FormDraft, Record, User, Workspace
from personas.records.services import check_not_erased

R = TypeVar("R", bound=Record)
# Form values by field name. A field with several check boxes has several values.
DraftValues = dict[str, list[str]]
MAX_DRAFTS = 200
MAX_DRAFT_LENGTH = 400_000


class DraftLimitExceeded(DomainError):
    """The member has too many drafts, or the draft is too long."""

    code = "too_many_drafts"


class DraftChanged(DomainError):
    """The draft was deleted or changed after it was loaded."""

    code = "draft_changed"


@transaction.atomic
def store_draft(
    workspace: Workspace,
    family: str,
    record: Record | None,
    typed: Mapping[str, Iterable[str]],
    *,
    key: str = "",
    base_revision: int = 0,
    agent: Agent | None = None,
    by: Actor,
) -> FormDraft:
    """Create or replace the draft of the member `by` for a record. The form values are not validated."""
    person = require_user(by)
    if record is not None:
        check_not_erased(record)
    values = clean_draft_values(typed)
    drafts = list_drafts(workspace, person)
    existing = drafts.filter(family=family, key=key).first()
    if existing is None and drafts.count() >= MAX_DRAFTS:
        raise DraftLimitExceeded(_("You have too many drafts. Discard some first."))
    defaults: dict[str, Any] = {"values": values, "base_revision": base_revision, "agent": agent}
    draft, _created = FormDraft.objects.in_workspace(workspace).update_or_create(
        person=person,
        family=family,
        key=key,
        defaults={**defaults, "updated_at": timezone.now()},
        create_defaults={**defaults, "updated_at": timezone.now(), "workspace": workspace},
    )
    return draft


def require_user(by: Actor) -> User:
    if by.user is None:
        raise DomainError(_("Only members can save drafts."))
    return by.user


def clean_draft_values(typed: Mapping[str, Iterable[str]]) -> DraftValues:
    """Convert newlines to LF, because browsers send CRLF. Reject values that are too long or contain NUL."""
    values = {name: [text.replace("\r\n", "\n") for text in texts] for name, texts in typed.items()}
    if sum(len(text) for texts in values.values() for text in texts) > MAX_DRAFT_LENGTH:
        raise DraftLimitExceeded(_("This text is too long to save as a draft. Shorten it."))
    if any("\0" in text for texts in values.values() for text in texts):
        raise DomainError(_("The character U+0000 is not allowed. Remove it."))
    return values


def list_drafts(workspace: Workspace | int, person: User) -> QuerySet[FormDraft]:
    """Return the drafts of one user in a workspace, last edited first."""
    rows = FormDraft.objects.in_workspace(workspace).filter(person=person)
    return rows.select_related("agent").order_by("-updated_at", "-pk")


def find_draft(workspace: Workspace, person: User, family: str, key: str) -> FormDraft | None:
    return list_drafts(workspace, person).filter(family=family, key=key).first()


def discard_draft(draft: FormDraft) -> None:
    FormDraft.objects.in_workspace(draft.workspace_id).filter(pk=draft.pk).delete()


@transaction.atomic
def apply_draft(draft: FormDraft, write: Callable[[], R]) -> R:
    """Delete a draft and call `write`, which saves the draft's values to the record, in one transaction.

    Raise DraftChanged if the draft was edited or deleted after it was loaded. The DELETE compares
    `updated_at`, so that only one of two concurrent calls succeeds.
    """
    rows = FormDraft.objects.in_workspace(draft.workspace_id)
    deleted, _kinds = rows.filter(pk=draft.pk, updated_at=draft.updated_at).delete()
    if not deleted:
        raise DraftChanged(
            _("Your draft was changed or discarded in the meantime, perhaps in another tab. Reload the page.")
        )
    return write()


def discard_user_drafts(workspace: Workspace | int, person: User) -> None:
    """Delete all drafts of a user who leaves the workspace."""
    list_drafts(workspace, person).delete()


def delete_drafts_containing(workspace: Workspace | int, family: str, key: str, texts: Iterable[str]) -> None:
    """Delete all users' drafts of an erased record, and all drafts that contain one of the erased texts."""
    needles = [text for text in texts if text]
    rows = FormDraft.objects.in_workspace(workspace)
    draft_ids = [
        draft.pk
        for draft in rows.only("family", "key", "values").iterator(chunk_size=50)
        if (draft.family, draft.key) == (family, key) or has_any_text(draft.values, needles)
    ]
    rows.filter(pk__in=draft_ids).delete()


def has_any_text(values: DraftValues, needles: Iterable[str]) -> bool:
    typed = [text for field_texts in values.values() for text in field_texts]
    return any(needle in text for needle in needles for text in typed)


def delete_drafts_before(cutoff: datetime) -> int:
    """Delete drafts last edited before the cutoff, in all workspaces, and return their number."""
    return delete_in_batches(FormDraft.unscoped.filter(updated_at__lt=cutoff))

"""Keeps what members have typed and not saved: a draft is its writer's own until it is saved."""

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
from personas.models import Agent, KeptDraft, Record, User, Workspace
from personas.records.services import check_not_erased

R = TypeVar("R", bound=Record)
# Field by field, as a form gives it: a box may be ticked many times.
DraftValues = dict[str, list[str]]
MAX_DRAFTS = 200
MAX_DRAFT_LENGTH = 400_000


class DraftLimitExceeded(DomainError):
    """More than anybody comes back to."""

    code = "too_much_kept"


class DraftChanged(DomainError):
    """The draft is gone, or says something else than what was looked at."""

    code = "draft_moved"


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
) -> KeptDraft:
    """Put the values in the place of those kept before; whether they could be saved is not asked."""
    person = require_user(by)
    if record is not None:
        check_not_erased(record)
    values = clean_draft_values(typed)
    drafts = list_drafts(workspace, person)
    existing = drafts.filter(family=family, key=key).first()
    if existing is None and drafts.count() >= MAX_DRAFTS:
        raise DraftLimitExceeded(_("You keep many drafts already. Discard some of them first."))
    defaults: dict[str, Any] = {"values": values, "base_revision": base_revision, "agent": agent}
    draft, _created = KeptDraft.objects.in_workspace(workspace).update_or_create(
        person=person,
        family=family,
        key=key,
        defaults={**defaults, "updated_at": timezone.now()},
        create_defaults={**defaults, "updated_at": timezone.now(), "workspace": workspace},
    )
    return draft


def require_user(by: Actor) -> User:
    if by.user is None:
        raise DomainError(_("Only people keep drafts."))
    return by.user


def clean_draft_values(typed: Mapping[str, Iterable[str]]) -> DraftValues:
    """With one kind of line end, and bounded; browsers send two."""
    values = {name: [text.replace("\r\n", "\n") for text in texts] for name, texts in typed.items()}
    if sum(len(text) for texts in values.values() for text in texts) > MAX_DRAFT_LENGTH:
        raise DraftLimitExceeded(_("This is too long to be kept as a draft."))
    if any("\0" in text for texts in values.values() for text in texts):
        raise DomainError(_("The character U+0000 cannot be kept."))
    return values


def list_drafts(workspace: Workspace | int, person: User) -> QuerySet[KeptDraft]:
    """One's own, the newest first."""
    rows = KeptDraft.objects.in_workspace(workspace).filter(person=person)
    return rows.select_related("agent").order_by("-updated_at", "-pk")


def find_draft(workspace: Workspace, person: User, family: str, key: str) -> KeptDraft | None:
    return list_drafts(workspace, person).filter(family=family, key=key).first()


def discard_draft(draft: KeptDraft) -> None:
    KeptDraft.objects.in_workspace(draft.workspace_id).filter(pk=draft.pk).delete()


@transaction.atomic
def apply_draft(draft: KeptDraft, write: Callable[[], R]) -> R:
    """Write what a draft says and let it go, both or neither; of two tabs that press at once, one does."""
    rows = KeptDraft.objects.in_workspace(draft.workspace_id)
    deleted, _kinds = rows.filter(pk=draft.pk, updated_at=draft.updated_at).delete()
    if not deleted:
        raise DraftChanged(
            _("Your draft was saved or changed meanwhile, perhaps in another tab. Look again.")
        )
    return write()


def discard_user_drafts(workspace: Workspace | int, person: User) -> None:
    """Who leaves a workspace takes nothing of it along, and finds nothing there on coming back."""
    list_drafts(workspace, person).delete()


def delete_drafts_containing(workspace: Workspace | int, family: str, key: str, texts: Iterable[str]) -> None:
    """Whoever's they are: those of an erased record, and those in which its words stand."""
    needles = [text for text in texts if text]
    rows = KeptDraft.objects.in_workspace(workspace)
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
    """Drafts that nobody has typed in since; how many went."""
    return delete_in_batches(KeptDraft.unscoped.filter(updated_at__lt=cutoff))

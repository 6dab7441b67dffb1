"""Apply endings to a restored database: what ended after the backup ends again.

An ending never gives a right, with two exceptions: ownership that was transferred, if the workspace would
have no owner otherwise, and a deleted workspace that its owner restored. A row that was created after an
ending is another one with the same id.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from personas.actors import Actor
from personas.api_keys.services import revoke_key
from personas.erasure.services import ERASABLE_FIELDS
from personas.errors import DomainError
from personas.members.services import change_role, remove_member, withdraw_invitation
from personas.models import (
    ApiKey,
    Erasure,
    ErasureProgress,
    Invitation,
    Membership,
    Record,
    User,
    Workspace,
)
from personas.roles import Role
from personas.workspaces.deletion import delete_workspace, reopen_workspace
from project.journal import selectors
from project.journal.accounts import RESTORE_ACTOR, apply_account_ending
from project.journal.files import Ending
from prompts.evidence.erasure.call_data import erase_pending_call_data
from prompts.evidence.erasure.services import erase_record, finish_erasure
from prompts.proof.json_reader import read_json_timestamp
from skills.models import AllowedFolder
from skills.sources.allowed_folders import withdraw_folder

# The rank of each role: 0 has the most rights.
ROLE_RANKS = {role: rank for rank, role in enumerate(Role.values)}
WORKSPACE_KINDS = (selectors.WORKSPACE_DELETED, selectors.WORKSPACE_RESTORED)
ERASABLE_MODELS: Mapping[str, type[Record]] = {model.kind: model for model in ERASABLE_FIELDS}


@dataclass
class AppliedEndings:
    """How many endings changed something, by kind; and what an operator has to look at."""

    counts: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


def apply_endings(endings: Iterable[Ending]) -> AppliedEndings:
    """Apply the endings in their order. Applying them again changes nothing more."""
    applied, endings = AppliedEndings(), list(endings)
    owners = list_transferred_ownerships(endings)
    with transaction.atomic():
        for ending in endings:
            if ending["kind"] in (selectors.MEMBER_REMOVED, selectors.ROLE_CHANGED):
                apply_member_ending(ending, owners, applied)
            elif (apply_ending := APPLY_BY_KIND.get(ending["kind"])) is not None:
                if count := apply_ending(ending, applied.notes):
                    applied.counts[ending["kind"]] += count
            elif ending["kind"] not in (selectors.ERASED, *WORKSPACE_KINDS):
                applied.notes.append(
                    f"An ending of the unknown kind “{ending['kind']}” was skipped. Use a newer release."
                )
        apply_workspace_states(endings, applied)
    # Each erasure has a transaction of its own, because it may rebuild many prompts.
    for ending in endings:
        if ending["kind"] == selectors.ERASED:
            repeat_erasure(ending, applied)
    return applied


def get_ending_time(ending: Ending) -> datetime:
    return read_json_timestamp(ending["at"], "the time of an ending")


# --- keys, invitations, allowed folders ----------------------------------------------------------------


def apply_key_revocation(ending: Ending, notes: list[str]) -> int:
    # Find the key by its digest, which identifies it whatever its id is.
    rows = ApiKey.objects.in_workspace(ending["workspace"]).filter(digest=ending["digest"], revoked_at=None)
    for key in rows:
        revoke_key(key, by=RESTORE_ACTOR)
    ids = [key.pk for key in rows]
    ApiKey.objects.in_workspace(ending["workspace"]).filter(pk__in=ids).update(
        revoked_at=get_ending_time(ending)
    )
    return len(ids)


def apply_key_rotation(ending: Ending, notes: list[str]) -> int:
    ends_at = read_json_timestamp(ending["ends_at"], "the end of a key")
    rows = ApiKey.objects.in_workspace(ending["workspace"]).filter(digest=ending["digest"])
    return rows.filter(expires_at__gt=ends_at).update(expires_at=ends_at)


def apply_withdrawn_invitation(ending: Ending, notes: list[str]) -> int:
    rows = Invitation.objects.in_workspace(ending["workspace"]).filter(
        pk=ending["id"], created_at__lte=get_ending_time(ending), accepted_at=None, withdrawn_at=None
    )
    for invitation in rows:
        withdraw_invitation(invitation, by=RESTORE_ACTOR)
    return len(rows)


def apply_withdrawn_folder(ending: Ending, notes: list[str]) -> int:
    rows = AllowedFolder.objects.in_workspace(ending["workspace"]).select_related("workspace")
    allowed_folder = rows.filter(pk=ending["id"], created_at__lte=get_ending_time(ending)).first()
    if allowed_folder is None:
        return 0
    try:
        withdraw_folder(allowed_folder, by=RESTORE_ACTOR)
    except DomainError as error:
        notes.append(
            f"An allowed folder of {allowed_folder.workspace.slug} was withdrawn, but is allowed "
            f"again: {error.message}"
        )
        return 0
    return 1


APPLY_BY_KIND: Mapping[str, Callable[[Ending, list[str]], int]] = {
    selectors.KEY_REVOKED: apply_key_revocation,
    selectors.KEY_SHORTENED: apply_key_rotation,
    selectors.INVITATION_WITHDRAWN: apply_withdrawn_invitation,
    selectors.FOLDER_WITHDRAWN: apply_withdrawn_folder,
    selectors.ACCOUNT_CHANGED: apply_account_ending,
}


# --- members -------------------------------------------------------------------------------------------


def list_transferred_ownerships(endings: Iterable[Ending]) -> set[tuple[int, int]]:
    """Return workspace and id of the memberships whose last change made them owners."""
    last: dict[tuple[int, int], str] = {}
    for ending in endings:
        if ending["kind"] in (selectors.MEMBER_REMOVED, selectors.ROLE_CHANGED):
            last[ending["workspace"], ending["id"]] = ending.get("role", "")
    return {key for key, role in last.items() if role == Role.OWNER}


def apply_member_ending(ending: Ending, owners: set[tuple[int, int]], applied: AppliedEndings) -> None:
    """Remove a member or lower a role. A higher role is not restored, except for a new owner (see above)."""
    rows = Membership.objects.in_workspace(ending["workspace"]).select_related("user", "workspace")
    member = rows.filter(pk=ending["id"], joined_at__lte=get_ending_time(ending)).first()
    if member is None:
        return
    role = ending.get("role", "")
    if role and ROLE_RANKS[role] <= ROLE_RANKS[member.role]:
        return
    if member.role == Role.OWNER and not rows.filter(role=Role.OWNER).exclude(pk=member.pk).exists():
        for heir in rows.filter(pk__in=[pk for workspace, pk in owners if workspace == ending["workspace"]]):
            change_role(heir, Role.OWNER, by=RESTORE_ACTOR)
    try:
        if role:
            change_role(member, role, by=RESTORE_ACTOR)
        else:
            remove_member(member, by=RESTORE_ACTOR)
    except DomainError as error:
        applied.notes.append(
            f"User {member.user_id} is still an owner of {member.workspace.slug}: {error.message}"
        )
    else:
        applied.counts[ending["kind"]] += 1


# --- workspaces ----------------------------------------------------------------------------------------


def apply_workspace_states(endings: Iterable[Ending], applied: AppliedEndings) -> None:
    """Delete workspaces that were deleted after the backup; restore those that were restored after it.

    The last ending of a workspace counts. The days in which an owner can restore it begin again.
    """
    last = {ending["workspace"]: ending for ending in endings if ending["kind"] in WORKSPACE_KINDS}
    for ending in last.values():
        apply_workspace_state(ending, applied)


def apply_workspace_state(ending: Ending, applied: AppliedEndings) -> None:
    rows = Workspace.objects.filter(pk=ending["workspace"], created_at__lte=get_ending_time(ending))
    workspace = rows.filter(removed_at=None).first()
    is_deleted = ending["kind"] == selectors.WORKSPACE_DELETED
    if workspace is None or (workspace.deleted_at is not None) == is_deleted:
        return
    if is_deleted:
        delete_workspace(workspace, by=RESTORE_ACTOR)
    else:
        reopen_workspace(workspace, by=RESTORE_ACTOR)
    applied.counts[ending["kind"]] += 1


# --- erasures ------------------------------------------------------------------------------------------


def repeat_erasure(ending: Ending, applied: AppliedEndings) -> None:
    """Erase the record again, from all versions. The tombstone keeps person, reason and time."""
    model, at = ERASABLE_MODELS.get(ending["record"]), get_ending_time(ending)
    record = (
        model.objects.in_workspace(ending["workspace"]).filter(pk=ending["id"], created_at__lte=at).first()
        if model
        else None
    )
    tombstones = Erasure.objects.in_workspace(ending["workspace"]).filter(
        kind=ending["record"], object_id=ending["id"]
    )
    if record is None or tombstones.filter(at__gte=at).exists():
        return
    person = User.objects.filter(pk=ending["person"] or 0, date_joined__lte=at).first()
    erasure = erase_record(
        record, reason=ending["reason"], by=Actor(label=ending["author_label"], user=person)
    )
    if erasure.status == ErasureProgress.REBUILDING:
        erase_pending_call_data(erasure.workspace_id, erasure.pk)
        finish_erasure(erasure.workspace_id, erasure.pk)
    tombstones.filter(pk=erasure.pk).update(at=at)
    applied.counts[selectors.ERASED] += 1


# --- without a journal ---------------------------------------------------------------------------------


@transaction.atomic
def revoke_all_keys() -> int:
    """Revoke every key of every workspace that is still valid, and return their number."""
    rows = ApiKey.unscoped.filter(revoked_at=None, expires_at__gt=timezone.now()).order_by("pk")
    return len([revoke_key(key, by=RESTORE_ACTOR) for key in rows])


@transaction.atomic
def withdraw_all_invitations() -> int:
    rows = Invitation.unscoped.filter(accepted_at=None, withdrawn_at=None).order_by("pk")
    for invitation in rows:
        withdraw_invitation(invitation, by=RESTORE_ACTOR)
    return len(rows)

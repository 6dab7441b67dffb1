"""Delete a workspace, and restore it within RESTORE_DAYS.

A deleted workspace keeps its rows for that time; then removal.py removes them. Its pages return 404, its keys
are revoked, its invitations are withdrawn, and nothing is sent or scanned for it.
"""

from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from core.db.expiry import REMOVAL_KIND
from core.db.workspace_scope import all_workspaces, workspace_scope
from personas.actors import Actor
from personas.api_keys.services import revoke_key
from personas.audit.services import write_audit_event
from personas.errors import DomainError
from personas.members.services import withdraw_invitation
from personas.models import ApiKey, Erasure, Invitation, Membership, User, Workspace
from personas.roles import Role
from personas.tenancy.lost_nodes import lock_workspace

RESTORE_DAYS = 14


class RestoreExpired(DomainError):
    """The workspace was deleted too long ago to be restored."""


@transaction.atomic
def delete_workspace(workspace: Workspace, *, by: Actor) -> Workspace:
    """Revoke the keys of a workspace, withdraw its invitations and close its pages.

    The lock is the one that new keys take, so no key is created meanwhile.
    """
    workspace = lock_workspace(workspace.pk)
    if workspace.deleted_at is not None:
        return workspace
    for key in ApiKey.objects.in_workspace(workspace).filter(revoked_at=None).order_by("pk"):
        revoke_key(key, by=by)
    invitations = Invitation.objects.in_workspace(workspace).select_related("workspace")
    for invitation in invitations.filter(accepted_at=None, withdrawn_at=None).order_by("pk"):
        withdraw_invitation(invitation, by=by)
    workspace.deleted_at = timezone.now()
    workspace.save(update_fields=["deleted_at"])
    # The triggers of append-only tables allow rows to be removed only if this erasure is old enough.
    Erasure(
        workspace=workspace,
        kind=REMOVAL_KIND,
        object_id=workspace.pk,
        reason="The workspace was deleted.",
        person=by.user,
        author_label=by.label,
    ).save()
    write_audit_event(workspace, "deleted", "workspace", workspace.pk, workspace.name, by=by)
    return workspace


@transaction.atomic
def restore_workspace(workspace: Workspace, *, by: Actor) -> Workspace:
    """Open a deleted workspace to its members again. Its keys stay revoked.

    Raise RestoreExpired if it was deleted too long ago.
    """
    workspace = lock_workspace(workspace.pk)
    if workspace.deleted_at is None:
        return workspace
    if get_restore_deadline(workspace) <= timezone.now():
        raise RestoreExpired(
            _("“%(workspace)s” was deleted more than %(days)s days ago and cannot be restored.")
            % {"workspace": workspace.name, "days": RESTORE_DAYS}
        )
    return reopen_workspace(workspace, by=by)


def reopen_workspace(workspace: Workspace, *, by: Actor) -> Workspace:
    workspace.deleted_at = None
    workspace.save(update_fields=["deleted_at"])
    Erasure.objects.in_workspace(workspace).filter(kind=REMOVAL_KIND).delete()
    write_audit_event(workspace, "restored", "workspace", workspace.pk, workspace.name, by=by)
    return workspace


def get_restore_deadline(workspace: Workspace) -> datetime:
    return (workspace.deleted_at or timezone.now()) + timedelta(days=RESTORE_DAYS)


def list_restorable_workspaces(user: User) -> list[Workspace]:
    """Return the deleted workspaces that a user can restore as an owner, the last deleted first."""
    cutoff = timezone.now() - timedelta(days=RESTORE_DAYS)
    with all_workspaces():
        rows = Membership.unscoped.filter(user=user, role=Role.OWNER, workspace__deleted_at__gt=cutoff)
        rows = rows.select_related("workspace").order_by("-workspace__deleted_at", "pk")
        return [membership.workspace for membership in rows]


def restore_own_workspace(workspace: Workspace, user: User) -> Workspace:
    """Restore one of the workspaces of `list_restorable_workspaces`."""
    with workspace_scope(workspace.pk):
        return restore_workspace(workspace, by=Actor.person(user))

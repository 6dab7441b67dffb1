"""Invite and remove members, change roles, transfer ownership."""

import secrets
from datetime import timedelta

from django.conf import settings
from django.core import signing
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from core.db.workspace_scope import all_workspaces, workspace_scope
from personas.actors import Actor
from personas.api_keys.services import revoke_member_keys
from personas.audit.services import write_audit_event
from personas.drafts.services import discard_user_drafts
from personas.errors import DomainError, InvalidInput
from personas.limits.emails import count_invitation
from personas.limits.persons import count_workspace_for
from personas.models import Invitation, Membership, User, Workspace
from personas.records.services import convert_save_errors
from personas.roles import Role
from personas.tenancy.lost_nodes import lock_workspace

INVITATION_DAYS = 7
INVITATION_SALT = "personas.invitation"


class BadInvitation(DomainError):
    """The invitation link is forged, expired, withdrawn, already used, or was sent to another address."""

    code = "invalid_invitation"


class OwnerProtected(DomainError):
    """A key cannot grant the role owner, nor change or remove an owner."""

    code = "not_allowed"


def check_owner_change(workspace: Workspace, role: str, *, by: Actor) -> None:
    """Raise OwnerProtected if a key changes a member or an invitation with the role owner.

    A stolen key must not leave the workspace to its thief. The browser asks for the password.
    """
    if by.has_key and role == Role.OWNER:
        page = f"{settings.PUBLIC_URL.rstrip('/')}/w/{workspace.slug}/members/"
        raise OwnerProtected(_("Keys cannot change owners. Use the browser: %(page)s") % {"page": page})


@transaction.atomic
def invite_member(workspace: Workspace, email: str, role: str, *, by: Actor) -> Invitation:
    """Create an invitation for an email address. Raise InvalidInput if it already belongs to a member.

    Raise DailyLimitReached if there were too many invitations today.
    """
    email = email.strip().lower()
    if by.user is None:
        raise DomainError(_("Only a member can send invitations."))
    check_owner_change(workspace, role, by=by)
    if Membership.objects.in_workspace(workspace).filter(user__email__iexact=email).exists():
        raise InvalidInput.on("email", _("%(email)s is already a member.") % {"email": email})
    _withdraw_expired(workspace, email)
    invitation = Invitation(
        workspace=workspace,
        email=email,
        role=role,
        nonce=secrets.token_urlsafe(32),
        invited_by=by.user,
        expires_at=timezone.now() + timedelta(days=INVITATION_DAYS),
    )
    _check_no_open_invitation(workspace, email)
    count_invitation(workspace, email, by.user)
    with convert_save_errors():
        invitation.full_clean()
        invitation.save()
    _audit_invitation(invitation, "invited", by=by)
    return invitation


def build_invitation_token(invitation: Invitation) -> str:
    """Return the signed token for the invitation link. It is sent by email only and not stored."""
    return signing.dumps({"id": invitation.pk, "nonce": invitation.nonce}, salt=INVITATION_SALT)


def get_open_invitation(token: str) -> Invitation:
    """Return the invitation of a token. Raise BadInvitation if it is used, withdrawn or expired."""
    try:
        payload = signing.loads(token, salt=INVITATION_SALT)
    except signing.BadSignature:
        raise BadInvitation(
            _("This invitation link is not valid. Check that you copied all of it.")
        ) from None
    with all_workspaces():
        rows = Invitation.unscoped.select_related("workspace", "invited_by")
        invitation = rows.filter(pk=payload["id"], nonce=payload["nonce"]).first()
    if invitation is None:
        raise BadInvitation(_("This invitation no longer exists. Ask for a new one."))
    _check_invitation_open(invitation)
    return invitation


@transaction.atomic
def accept_invitation(token: str, user: User) -> Membership:
    """Add the user to the workspace of an invitation.

    Raise BadInvitation unless the invitation is open and was sent to the user's email address.
    """
    invitation = get_open_invitation(token)
    with workspace_scope(invitation.workspace_id):
        return _add_member(invitation, user)


def _add_member(invitation: Invitation, user: User) -> Membership:
    rows = Invitation.objects.in_workspace(invitation.workspace_id).select_for_update(of=("self",))
    invitation = rows.get(pk=invitation.pk)
    _check_invitation_open(invitation)
    if invitation.email != user.email.lower():
        raise BadInvitation(
            _(
                "This invitation was sent to %(email)s, but you are signed in as "
                "%(own_email)s. Sign in as %(email)s to accept it."
            )
            % {"email": invitation.email, "own_email": user.email}
        )
    invitation.accepted_at = timezone.now()
    invitation.save(update_fields=["accepted_at"])
    membership, _is_new = Membership.objects.in_workspace(invitation.workspace_id).get_or_create(
        user=user, defaults={"role": invitation.role, "workspace_id": invitation.workspace_id}
    )
    _audit_invitation(invitation, "accepted", by=Actor.person(user))
    # Set the workspace here, so that the caller can read it without a query after the workspace scope ends.
    membership.workspace = invitation.workspace
    return membership


@transaction.atomic
def withdraw_invitation(invitation: Invitation, *, by: Actor) -> None:
    """Withdraw an open invitation, so that its link no longer works."""
    check_owner_change(invitation.workspace, invitation.role, by=by)
    if invitation.accepted_at is None and invitation.withdrawn_at is None:
        invitation.withdrawn_at = timezone.now()
        invitation.save(update_fields=["withdrawn_at"])
        _audit_invitation(invitation, "withdrawn", by=by)


@transaction.atomic
def resend_invitation(invitation: Invitation, *, by: Actor) -> Invitation:
    """Withdraw an open or expired invitation and create a new one for the same address and role.

    The old link stops working. Raise BadInvitation if the invitation was accepted or withdrawn.
    """
    rows = Invitation.objects.in_workspace(invitation.workspace_id).select_for_update(of=("self",))
    invitation = rows.get(pk=invitation.pk)
    if invitation.accepted_at is not None or invitation.withdrawn_at is not None:
        _check_invitation_open(invitation)
    withdraw_invitation(invitation, by=by)
    return invite_member(invitation.workspace, invitation.email, invitation.role, by=by)


@transaction.atomic
def change_role(membership: Membership, role: str, *, by: Actor) -> Membership:
    """Change the role of a member. Raise DomainError if the workspace would have no owner left."""
    if role not in Role.values:
        raise InvalidInput.on("role", _("“%(role)s” is not a valid role.") % {"role": role})
    membership = _lock_membership(membership)
    if membership.role == role:
        return membership
    for one in (membership.role, role):
        check_owner_change(membership.workspace, one, by=by)
    if membership.role == Role.OWNER:
        _check_last_owner(membership)
        _relieve_person(membership, by)
    before, membership.role = membership.role, role
    membership.save(update_fields=["role"])
    _audit_member(membership, "role changed", by=by, before={"role": before}, after={"role": role})
    return membership


@transaction.atomic
def remove_member(membership: Membership, *, by: Actor) -> None:
    """Remove a member from the workspace, revoke the member's admin keys and delete the member's drafts.

    Revisions and audit events keep the member's name.
    """
    membership = _lock_membership(membership)
    check_owner_change(membership.workspace, membership.role, by=by)
    _check_last_owner(membership)
    _relieve_person(membership, by)
    revoke_member_keys(membership.workspace_id, membership.user, by=by)
    discard_user_drafts(membership.workspace_id, membership.user)
    verb = "left" if by.user and by.user.pk == membership.user_id else "removed"
    _audit_member(membership, verb, by=by, before={"role": membership.role}, after=None)
    membership.delete()


@transaction.atomic
def transfer_ownership(owner: Membership, new_owner: Membership, *, by: Actor) -> None:
    """Make another member an owner and the current owner an admin, in one transaction."""
    owner, new_owner = _lock_membership(owner), _lock_membership(new_owner)
    if owner.role != Role.OWNER or owner.pk == new_owner.pk:
        raise DomainError(_("Only an owner can transfer ownership, and only to another member."))
    change_role(new_owner, Role.OWNER, by=by)
    change_role(owner, Role.ADMIN, by=by)


def _lock_membership(membership: Membership) -> Membership:
    # Lock the workspace row: if the last two owners leave at the same time, only one of them may succeed.
    # Use FOR NO KEY UPDATE, because a full lock could deadlock with a transaction that revokes a key: that
    # transaction inserts an audit event with a foreign key to the workspace.
    lock_workspace(membership.workspace_id)
    return (
        Membership.objects.in_workspace(membership.workspace_id)
        .select_related("user", "workspace")
        .get(pk=membership.pk)
    )


def _relieve_person(membership: Membership, by: Actor) -> None:
    """Let the workspace count for the owner who removes or demotes the user that it counts for.

    The user could no longer decide what it uses. Users who leave or give up the role themselves stay that
    user until another owner takes over: otherwise they could leave it to a user who did not agree.
    """
    workspace = Workspace.objects.get(pk=membership.workspace_id)
    if workspace.counted_for_id != membership.user_id or by.user is None or by.user.pk == membership.user_id:
        return
    owners = Membership.objects.in_workspace(workspace).filter(role=Role.OWNER)
    if owners.filter(user=by.user).exists():
        count_workspace_for(workspace, by.user)


def _check_last_owner(membership: Membership) -> None:
    owners = Membership.objects.in_workspace(membership.workspace_id).filter(role=Role.OWNER)
    if membership.role == Role.OWNER and not owners.exclude(pk=membership.pk).exists():
        raise DomainError(_("A workspace needs an owner. Make another member an owner first."))


def _check_invitation_open(invitation: Invitation) -> None:
    if invitation.accepted_at is not None:
        raise BadInvitation(_("This invitation has already been used."))
    if invitation.withdrawn_at is not None:
        raise BadInvitation(_("This invitation was withdrawn. Ask for a new one."))
    if invitation.is_expired:
        raise BadInvitation(_("This invitation has expired. Ask for a new one."))


def _check_no_open_invitation(workspace: Workspace, email: str) -> None:
    open_invitations = Invitation.objects.in_workspace(workspace).filter(
        email=email, accepted_at=None, withdrawn_at=None
    )
    if open_invitations.exists():
        raise InvalidInput.on(
            "email",
            _("%(email)s already has a pending invitation. Withdraw it to send another one.")
            % {"email": email},
        )


def _withdraw_expired(workspace: Workspace, email: str) -> None:
    expired = Invitation.objects.in_workspace(workspace).filter(
        email=email, accepted_at=None, withdrawn_at=None, expires_at__lte=timezone.now()
    )
    expired.update(withdrawn_at=timezone.now())


def _audit_invitation(invitation: Invitation, verb: str, *, by: Actor) -> None:
    after = {"email": invitation.email, "role": invitation.role}
    write_audit_event(
        invitation.workspace_id, verb, "invitation", invitation.pk, invitation.email, by=by, after=after
    )


def _audit_member(
    membership: Membership,
    verb: str,
    *,
    by: Actor,
    before: dict[str, str] | None,
    after: dict[str, str] | None,
) -> None:
    label = membership.user.email
    write_audit_event(
        membership.workspace_id, verb, "member", membership.pk, label, by=by, before=before, after=after
    )

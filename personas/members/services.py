"""People: who joins a workspace, in which role, and who leaves."""

import secrets
from datetime import timedelta

from django.core import signing
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from core.db.workspace_scope import everywhere, within
from personas.actors import Actor
from personas.api_keys.services import revoke_keys_of
from personas.audit.services import note_event
from personas.drafts.services import discard_drafts_of
from personas.errors import DomainError, Invalid
from personas.models import Invitation, Membership, User, Workspace
from personas.records.services import readable_errors
from personas.roles import Role

INVITATION_DAYS = 7
SALT = "personas.invitation"


class BadInvitation(DomainError):
    """A link that is forged, expired, used up or meant for someone else."""

    code = "bad_invitation"


@transaction.atomic
def invite(workspace: Workspace, email: str, role: str, *, by: Actor) -> Invitation:
    """Offer a role to an address; a person who is in already is not asked again."""
    email = email.strip().lower()
    if by.user is None:
        raise DomainError(_("Only a person can invite."))
    if Membership.objects.in_workspace(workspace).filter(user__email__iexact=email).exists():
        raise Invalid.on("email", _("%(email)s is already a member.") % {"email": email})
    _withdraw_lapsed(workspace, email)
    invitation = Invitation(
        workspace=workspace,
        email=email,
        role=role,
        nonce=secrets.token_urlsafe(32),
        invited_by=by.user,
        expires_at=timezone.now() + timedelta(days=INVITATION_DAYS),
    )
    _refuse_second_offer(workspace, email)
    with readable_errors():
        invitation.full_clean()
        invitation.save()
    _note(invitation, "invited", by=by)
    return invitation


def invitation_token(invitation: Invitation) -> str:
    """The signed part of the link; only the holder of the e-mail has it."""
    return signing.dumps({"id": invitation.pk, "nonce": invitation.nonce}, salt=SALT)


def invitation_from(token: str) -> Invitation:
    """The open invitation behind a link, or the reason why there is none."""
    try:
        said = signing.loads(token, salt=SALT)
    except signing.BadSignature:
        raise BadInvitation(_("This invitation link is not valid. Check that it was copied whole.")) from None
    rows = Invitation.unscoped.select_related("workspace", "invited_by")
    with everywhere():
        invitation = rows.filter(pk=said["id"], nonce=said["nonce"]).first()
    if invitation is None:
        raise BadInvitation(_("This invitation does not exist any more."))
    _refuse_closed(invitation)
    return invitation


@transaction.atomic
def accept_invitation(token: str, user: User) -> Membership:
    """Join, if the link is good and meant for this person's address."""
    invitation = invitation_from(token)
    with within(invitation.workspace_id):
        return _join(invitation, user)


def _join(invitation: Invitation, user: User) -> Membership:
    rows = Invitation.objects.in_workspace(invitation.workspace_id).select_for_update(of=("self",))
    invitation = rows.get(pk=invitation.pk)
    _refuse_closed(invitation)
    if invitation.email != user.email.lower():
        raise BadInvitation(
            _("This invitation was sent to %(email)s; you are signed in as %(own_email)s.")
            % {"email": invitation.email, "own_email": user.email}
        )
    invitation.accepted_at = timezone.now()
    invitation.save(update_fields=["accepted_at"])
    membership, _is_new = Membership.objects.in_workspace(invitation.workspace_id).get_or_create(
        user=user, defaults={"role": invitation.role, "workspace_id": invitation.workspace_id}
    )
    _note(invitation, "accepted", by=Actor.person(user))
    # Whoever asks next what they have joined may stand outside of it.
    membership.workspace = invitation.workspace
    return membership


@transaction.atomic
def withdraw_invitation(invitation: Invitation, *, by: Actor) -> None:
    """Make a link that was sent out worthless."""
    if invitation.accepted_at is None and invitation.withdrawn_at is None:
        invitation.withdrawn_at = timezone.now()
        invitation.save(update_fields=["withdrawn_at"])
        _note(invitation, "withdrawn", by=by)


@transaction.atomic
def change_role(membership: Membership, role: str, *, by: Actor) -> Membership:
    """Give a member another role; the last owner keeps theirs."""
    if role not in Role.values:
        raise Invalid.on("role", _("“%(role)s” is not a role.") % {"role": role})
    membership = _held(membership)
    if membership.role == role:
        return membership
    if membership.role == Role.OWNER:
        _refuse_losing_last_owner(membership)
    before, membership.role = membership.role, role
    membership.save(update_fields=["role"])
    _note_member(membership, "role changed", by=by, before={"role": before}, after={"role": role})
    return membership


@transaction.atomic
def remove_member(membership: Membership, *, by: Actor) -> None:
    """Shut a person out, and the keys that act for them; what they wrote stays theirs in the history."""
    membership = _held(membership)
    _refuse_losing_last_owner(membership)
    revoke_keys_of(membership.workspace_id, membership.user, by=by)
    discard_drafts_of(membership.workspace_id, membership.user)
    verb = "left" if by.user and by.user.pk == membership.user_id else "removed"
    _note_member(membership, verb, by=by, before={"role": membership.role}, after=None)
    membership.delete()


@transaction.atomic
def transfer_ownership(giver: Membership, taker: Membership, *, by: Actor) -> None:
    """Make someone else owner and step back to admin, in one move."""
    giver, taker = _held(giver), _held(taker)
    if giver.role != Role.OWNER or giver.pk == taker.pk:
        raise DomainError(_("Only an owner can hand over ownership, and only to someone else."))
    change_role(taker, Role.OWNER, by=by)
    change_role(giver, Role.ADMIN, by=by)


def _held(membership: Membership) -> Membership:
    # The workspace row is the lock: two owners who leave at once must not both succeed. Not the whole lock:
    # who is ending a key meanwhile notes it in this workspace, and each would wait for the other.
    Workspace.objects.select_for_update(no_key=True).get(pk=membership.workspace_id)
    return (
        Membership.objects.in_workspace(membership.workspace_id).select_related("user").get(pk=membership.pk)
    )


def _refuse_losing_last_owner(membership: Membership) -> None:
    owners = Membership.objects.in_workspace(membership.workspace_id).filter(role=Role.OWNER)
    if membership.role == Role.OWNER and not owners.exclude(pk=membership.pk).exists():
        raise DomainError(_("A workspace needs an owner: make someone else owner first."))


def _refuse_closed(invitation: Invitation) -> None:
    if invitation.accepted_at is not None:
        raise BadInvitation(_("This invitation has been used already."))
    if invitation.withdrawn_at is not None:
        raise BadInvitation(_("This invitation was withdrawn. Ask for a new one."))
    if invitation.is_expired:
        raise BadInvitation(_("This invitation has expired. Ask for a new one."))


def _refuse_second_offer(workspace: Workspace, email: str) -> None:
    waiting = Invitation.objects.in_workspace(workspace).filter(
        email=email, accepted_at=None, withdrawn_at=None
    )
    if waiting.exists():
        raise Invalid.on(
            "email",
            _("%(email)s has an open invitation already. Withdraw it to send another.") % {"email": email},
        )


def _withdraw_lapsed(workspace: Workspace, email: str) -> None:
    lapsed = Invitation.objects.in_workspace(workspace).filter(
        email=email, accepted_at=None, withdrawn_at=None, expires_at__lte=timezone.now()
    )
    lapsed.update(withdrawn_at=timezone.now())


def _note(invitation: Invitation, verb: str, *, by: Actor) -> None:
    after = {"email": invitation.email, "role": invitation.role}
    note_event(
        invitation.workspace_id, verb, "invitation", invitation.pk, invitation.email, by=by, after=after
    )


def _note_member(
    membership: Membership,
    verb: str,
    *,
    by: Actor,
    before: dict[str, str] | None,
    after: dict[str, str] | None,
) -> None:
    label = membership.user.email
    note_event(
        membership.workspace_id, verb, "member", membership.pk, label, by=by, before=before, after=after
    )

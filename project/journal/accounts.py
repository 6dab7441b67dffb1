"""Apply the endings of accounts to a restored database: passwords, second factors, email addresses, access.

A new password or factor is not in the journal. An account with an old password gets none, so that its user
must reset it by email.
"""

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator

from personas.accounts.models import SecurityEvent, SecurityEventKind
from personas.accounts.operator_audit import audit_account_change
from personas.actors import Actor
from personas.models import User
from project.journal.files import Ending
from project.journal.selectors import PASSWORD_EVENTS
from prompts.proof.json_reader import read_json_timestamp

# The author of changes that a restore makes.
RESTORE_ACTOR = Actor(label="restore")
ADDRESS_EVENTS = (SecurityEventKind.EMAIL_REMOVED, SecurityEventKind.EMAIL_CHANGED)
FACTOR_TYPES = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)


def apply_account_ending(ending: Ending, notes: list[str]) -> int:
    """End what the account no longer had after an event. Return 1 if something changed."""
    at = read_json_timestamp(ending["at"], "the time of an ending")
    user = User.objects.filter(pk=ending["user"], date_joined__lte=at).first()
    # If the backup contains the event, it also contains the change that the event records.
    if user is None or SecurityEvent.objects.filter(pk=ending["id"], user=user, at=at).exists():
        return 0
    changes = [
        *end_password(user, ending),
        *end_factors(user, ending),
        *end_addresses(user, ending, notes),
        *end_access(user, ending),
    ]
    if not changes:
        return 0
    user.save(update_fields=["password", "email", "is_active", "is_superuser"])
    audit_account_change(user, f"restored from a backup: {', '.join(changes)}", by=RESTORE_ACTOR)
    return 1


def end_password(user: User, ending: Ending) -> list[str]:
    if ending["event"] not in PASSWORD_EVENTS or not user.has_usable_password():
        return []
    user.set_unusable_password()
    return ["password removed; reset it by email"]


def end_factors(user: User, ending: Ending) -> list[str]:
    """Remove the factors that were gone, and recovery codes after one was used.

    If no second factor is left, the password is removed too: the user may have set up another factor since,
    and the account must not be open to its password alone.
    """
    rows = Authenticator.objects.filter(user=user)
    gone = rows.exclude(pk__in=ending["factors"])
    if ending["event"] == SecurityEventKind.RECOVERY_CODE_USED:
        gone |= rows.filter(type=Authenticator.Type.RECOVERY_CODES)
    had_factor = rows.filter(type__in=FACTOR_TYPES).exists()
    ids = [factor.pk for factor in gone]
    rows.filter(pk__in=ids).delete()
    if not ids:
        return []
    if had_factor and not rows.filter(type__in=FACTOR_TYPES).exists():
        user.set_unusable_password()
    return ["second factors removed"]


def end_addresses(user: User, ending: Ending, notes: list[str]) -> list[str]:
    """Remove the addresses that were gone, to which a password reset would be sent.

    An account without another address is disabled, because its new address is not known.
    """
    rows = EmailAddress.objects.filter(user=user)
    gone = rows.exclude(pk__in=ending["addresses"])
    if ending["event"] not in ADDRESS_EVENTS or not gone.exists():
        return []
    gone.delete()
    remaining = rows.filter(verified=True).order_by("-primary", "pk").first()
    if remaining is None:
        user.is_active = False
        notes.append(
            f"User {user.pk} had changed the email address, and the new one is not in the backup. The "
            "account is disabled. Invite the new address."
        )
        return ["email address removed", "account disabled"]
    if user.email.lower() != remaining.email.lower():
        remaining.set_as_primary()
        user.email = remaining.email
    return ["email address removed"]


def end_access(user: User, ending: Ending) -> list[str]:
    """Disable the account, or take its operator rights."""
    changes = []
    if user.is_active and not ending["is_active"]:
        user.is_active = False
        changes.append("account disabled")
    if user.is_superuser and not ending["is_superuser"]:
        user.is_superuser = False
        changes.append("operator rights removed")
    return changes

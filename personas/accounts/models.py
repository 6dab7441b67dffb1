"""Security events of user accounts."""

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class SecurityEventKind(models.TextChoices):
    """What happened. The values are also the names of the log events."""

    SIGNED_UP = "signed_up", _("Account created")
    SIGNED_IN = "signed_in", _("Signed in")
    SIGN_IN_FAILED = "sign_in_failed", _("Sign-in failed: wrong password")
    SIGN_IN_DELAYED = "sign_in_delayed", _("Sign-in blocked: too many failed attempts")
    SECOND_FACTOR_FAILED = "second_factor_failed", _("Sign-in failed: wrong code")
    SIGNED_OUT = "signed_out", _("Signed out")
    SESSION_ENDED = "session_ended", _("Session ended")
    PASSWORD_CHANGED = "password_changed", _("Password changed")  # an event name, not a password
    PASSWORD_RESET_REQUESTED = "password_reset_requested", _("Password reset requested")
    PASSWORD_RESET = "password_reset", _("Password reset")
    SECOND_FACTOR_ADDED = "second_factor_added", _("Second factor added")
    SECOND_FACTOR_REMOVED = "second_factor_removed", _("Second factor removed")
    RECOVERY_CODES_GENERATED = "recovery_codes_generated", _("Recovery codes generated")
    RECOVERY_CODE_USED = "recovery_code_used", _("Recovery code used")
    EMAIL_ADDED = "email_added", _("Email address added")
    EMAIL_REMOVED = "email_removed", _("Email address removed")
    EMAIL_CHANGED = "email_changed", _("Primary email address changed")
    ACCOUNT_VIEWED = "account_viewed", _("Account viewed by an operator")
    ACCOUNT_CHANGED = "account_changed", _("Account changed by an operator")


# Anybody can cause these events without a password, so repeated ones are counted in one row.
REPEATED_KINDS = frozenset({SecurityEventKind.SIGN_IN_FAILED, SecurityEventKind.SIGN_IN_DELAYED})

NEW_DEVICE = "new device"
# Translations of `detail` for display. Other details are shown as they are stored.
DETAIL_LABELS = {
    NEW_DEVICE: _("New device"),
    "totp": _("Authenticator app"),
    "webauthn": _("Passkey or security key"),
    "recovery_codes": _("Recovery codes"),
}


class SecurityEvent(models.Model):
    """Something that happened to an account, shown to its user. It belongs to a user and to no workspace.

    `user` is null if the sign-in named an account that does not exist: the same statements run in both
    cases, so that the response time does not reveal which accounts exist.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="security_events"
    )
    # A SecurityEventKind. Without `choices`, so that a new kind needs no migration.
    kind = models.CharField(max_length=32)
    detail = models.CharField(max_length=200, blank=True)
    # The operator who caused the event; empty if the user or a visitor did.
    actor_label = models.CharField(max_length=254, blank=True)
    # The network of the client's address, for example 192.0.2.0/24.
    network = models.CharField(max_length=50, blank=True)
    user_agent = models.CharField(max_length=200, blank=True)
    count = models.PositiveIntegerField(default=1)
    # The time of the newest occurrence.
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            models.Index(fields=["user", "-at"], name="security_events_of_user"),
            models.Index(fields=["at"], name="security_events_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} ({self.at:%Y-%m-%d %H:%M})"

    @property
    def detail_label(self) -> str:
        return str(DETAIL_LABELS.get(self.detail, self.detail))

    @property
    def kind_label(self) -> str:
        return str(SecurityEventKind(self.kind).label) if self.kind in SecurityEventKind else self.kind

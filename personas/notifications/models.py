"""Notifications of members, their preferences, and the number of the last event that was looked at."""

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from personas.events.models import Event
from personas.members.models import Membership
from personas.tenancy.fields import TenantForeignKey
from personas.tenancy.models import WorkspaceOwned
from personas.workspaces.models import Workspace


class NotificationKind(models.TextChoices):
    """What a notification is about. Members choose for each kind how they get it."""

    REVIEW_REQUESTED = "review_requested", _("Releases that need review")
    RELEASE_UPDATED = "release_updated", _("Decisions about your releases and changes")
    COMMENTED = "commented", _("Comments on your releases, changes and memories")
    MEMORY_PROPOSED = "memory_proposed", _("Memories that need approval")
    FILE_WAITING = "file_waiting", _("Context files that need review")
    BUILD_FAILED = "build_failed", _("Failed builds")
    KEY_EXPIRING = "key_expiring", _("API keys that expire soon")
    WEBHOOK_DISABLED = "webhook_disabled", _("Disabled webhook endpoints")
    CHAIN_BROKEN = "chain_broken", _("Failed integrity checks")


class NotificationDelivery(models.TextChoices):
    """How a member gets notifications of a kind."""

    APP = "app", _("In the app")
    EMAIL = "email", _("In the app and by email")
    NONE = "none", _("Off")


class Notification(WorkspaceOwned):
    """Something that a member should know. It has no text: the event says what happened.

    Events of some kinds are counted in one unread notification; `event` is then the newest of them.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+", db_index=False)
    member = TenantForeignKey(
        Membership, on_delete=models.CASCADE, related_name="notifications", db_index=False
    )
    event = TenantForeignKey(Event, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=20, choices=NotificationKind.choices)
    count = models.PositiveIntegerField(default=1)
    at = models.DateTimeField(default=timezone.now)
    read_at = models.DateTimeField(null=True)
    # Whether the notification is also sent by email, and when it was sent.
    is_email = models.BooleanField(default=False)
    emailed_at = models.DateTimeField(null=True)

    class Meta(WorkspaceOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["workspace", "member", "event"], name="notification_once")
        ]
        indexes = [
            models.Index(fields=["workspace", "member", "-at"], name="notifications_of_member"),
            models.Index(
                fields=["workspace", "member", "kind"],
                name="notifications_unread",
                condition=Q(read_at=None),
            ),
            models.Index(
                fields=["workspace", "member", "at"],
                name="notifications_to_email",
                condition=Q(is_email=True, emailed_at=None, read_at=None),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} for {self.member_id}"

    @property
    def is_unread(self) -> bool:
        return self.read_at is None


class NotificationPreference(WorkspaceOwned):
    """How a member gets the notifications of a kind. Without a row, the kind has its default."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+", db_index=False)
    member = TenantForeignKey(Membership, on_delete=models.CASCADE, related_name="+", db_index=False)
    kind = models.CharField(max_length=20, choices=NotificationKind.choices)
    delivery = models.CharField(max_length=5, choices=NotificationDelivery.choices)

    class Meta(WorkspaceOwned.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "member", "kind"], name="notification_preference_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.delivery}"


class NotificationQueue(WorkspaceOwned):
    """The number of the last event of a workspace that members were notified of."""

    workspace = models.OneToOneField(Workspace, on_delete=models.PROTECT, related_name="+")
    position = models.PositiveBigIntegerField(default=0)

    class Meta(WorkspaceOwned.Meta):
        pass

    def __str__(self) -> str:
        return f"{self.workspace_id}: {self.position}"

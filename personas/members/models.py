"""Memberships and invitations of a workspace."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from personas.roles import Role
from personas.tenancy.models import WorkspaceOwned


class Membership(WorkspaceOwned):
    """Membership of a user in a workspace, with the user's role there."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices)
    joined_at = models.DateTimeField(auto_now_add=True)
    # Number of unread notifications. Every page loads this row and shows the number.
    unread_count = models.PositiveIntegerField(default=0, db_default=0, editable=False)

    class Meta(WorkspaceOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["workspace", "user"], name="one_membership_per_person"),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="membership_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user} ({self.get_role_display()})"


class Invitation(WorkspaceOwned):
    """An invitation by email to join a workspace, which expires and can be withdrawn.

    The link in the email contains the id and the nonce of this row, signed.
    """

    email = models.EmailField()
    role = models.CharField(max_length=10, choices=Role.choices)
    nonce = models.CharField(max_length=43, unique=True, editable=False)
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True)
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta(WorkspaceOwned.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "email"],
                condition=models.Q(accepted_at=None, withdrawn_at=None),
                name="one_open_invitation_per_address",
            ),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="invitation_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.email} as {self.get_role_display()}"

    @property
    def is_expired(self) -> bool:
        return self.expires_at <= timezone.now()

    @property
    def is_open(self) -> bool:
        return self.accepted_at is None and self.withdrawn_at is None and not self.is_expired

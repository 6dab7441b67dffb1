"""Webhook endpoints, deliveries and their attempts. The rows are the queue: Redis only wakes the workers."""

from typing import Any

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from personas.events.models import Event
from personas.tenancy.fields import TenantForeignKey
from personas.tenancy.models import WorkspaceOwned
from personas.workspaces.models import Workspace


class EndpointStatus(models.TextChoices):
    """Whether an endpoint gets events, and why not."""

    ENABLED = "enabled", _("Enabled")
    DISABLED = "disabled", _("Disabled")
    GONE = "gone", _("Disabled after the receiver returned 410")
    FAILING = "failing", _("Disabled after repeated delivery failures")


class DeliveryStatus(models.TextChoices):
    PENDING = "pending", _("Pending")
    DELIVERED = "delivered", _("Delivered")
    FAILED = "failed", _("Failed")


class WebhookEndpoint(WorkspaceOwned):
    """A URL that gets the events of a workspace. An empty list of types, agents, channels or labels is all.

    The secrets are encrypted (personas.accounts.encryption). `previous_secret` signs too until
    `previous_ends_at`, so that a receiver can change over.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+", db_index=False)
    name = models.CharField(max_length=80)
    url = models.CharField(max_length=500)
    types = models.JSONField(default=list, blank=True)
    agents = models.JSONField(default=list, blank=True)
    channels = models.JSONField(default=list, blank=True)
    labels = models.JSONField(default=list, blank=True)
    status = models.CharField(
        max_length=10, choices=EndpointStatus.choices, default=EndpointStatus.ENABLED, editable=False
    )
    revision = models.PositiveIntegerField(default=1, editable=False)
    secret = models.CharField(max_length=300, editable=False)
    previous_secret = models.CharField(max_length=300, blank=True, editable=False)
    previous_ends_at = models.DateTimeField(null=True, editable=False)
    # Ed25519 key, for receivers that verify signatures with the public key.
    private_key = models.CharField(max_length=300, editable=False)
    created_label = models.CharField(max_length=254, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    # Only events after this time are delivered.
    active_since = models.DateTimeField(default=timezone.now, editable=False)
    # State for the workers: until when one of them has leased the endpoint, when it was last served, and
    # until when no requests are sent to it.
    leased_until = models.DateTimeField(null=True, editable=False)
    served_at = models.DateTimeField(null=True, editable=False)
    held_until = models.DateTimeField(null=True, editable=False)
    failures = models.PositiveIntegerField(default=0, editable=False)
    failing_since = models.DateTimeField(null=True, editable=False)

    class Meta(WorkspaceOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="webhook_name_once")]

    def __str__(self) -> str:
        return self.name

    @property
    def is_enabled(self) -> bool:
        return self.status == EndpointStatus.ENABLED

    def snapshot(self) -> dict[str, Any]:
        """Return the values for the audit log. Secrets are not among them."""
        names = ("name", "url", "types", "agents", "channels", "labels", "status")
        return {name: getattr(self, name) for name in names}


class WebhookQueue(WorkspaceOwned):
    """The number of the last event of a workspace for which deliveries were created."""

    workspace = models.OneToOneField(Workspace, on_delete=models.PROTECT, related_name="+")
    position = models.PositiveBigIntegerField(default=0)

    class Meta(WorkspaceOwned.Meta):
        pass

    def __str__(self) -> str:
        return f"{self.workspace_id}: {self.position}"


class WebhookDelivery(WorkspaceOwned):
    """An event that an endpoint gets, with the time of the next attempt."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+", db_index=False)
    endpoint = TenantForeignKey(
        WebhookEndpoint, on_delete=models.CASCADE, related_name="deliveries", db_index=False
    )
    event = TenantForeignKey(Event, on_delete=models.CASCADE, related_name="+")
    status = models.CharField(max_length=10, choices=DeliveryStatus.choices, default=DeliveryStatus.PENDING)
    attempt_count = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField(default=timezone.now)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True)

    class Meta(WorkspaceOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["workspace", "endpoint", "event"], name="webhook_delivery_once")
        ]
        indexes = [
            models.Index(
                fields=["workspace", "endpoint", "due_at"],
                name="webhook_deliveries_due",
                condition=models.Q(status="pending"),
            )
        ]

    def __str__(self) -> str:
        return f"{self.event_id} to {self.endpoint_id}: {self.status}"


class WebhookAttempt(WorkspaceOwned):
    """One request of a delivery: the status and the start of the response, or the error."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+", db_index=False)
    delivery = TenantForeignKey(WebhookDelivery, on_delete=models.CASCADE, related_name="attempts")
    at = models.DateTimeField()
    milliseconds = models.PositiveIntegerField()
    status = models.PositiveSmallIntegerField(null=True)
    error = models.CharField(max_length=200, blank=True)
    response = models.TextField(blank=True)

    class Meta(WorkspaceOwned.Meta):
        indexes = [models.Index(fields=["workspace", "at"], name="webhook_attempts_by_time")]

    def __str__(self) -> str:
        return f"{self.delivery_id}: {self.status or self.error}"

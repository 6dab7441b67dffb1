"""Audit events: an append-only table."""

from django.conf import settings
from django.db import models

from personas.tenancy.models import WorkspaceOwned


class AuditEvent(WorkspaceOwned):
    """Record of one action: actor, object, time, and the object's values before and after the action."""

    verb = models.CharField(max_length=40)
    kind = models.CharField(max_length=20)
    object_id = models.BigIntegerField()
    object_label = models.CharField(max_length=254)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    actor_label = models.CharField(max_length=254)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    request_id = models.CharField(max_length=64, blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta(WorkspaceOwned.Meta):
        indexes = [
            models.Index(fields=["workspace", "-at"], name="audit_by_time"),
            models.Index(fields=["workspace", "kind", "object_id", "-at"], name="audit_by_object"),
        ]

    def __str__(self) -> str:
        return f"{self.actor_label} {self.verb} {self.kind} {self.object_label}"

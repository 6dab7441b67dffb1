"""What was changed, by whom and when: two tables that only grow."""

from django.conf import settings
from django.db import models

from personas.records.models import WorkspaceOwned


class Revision(WorkspaceOwned):
    """The whole content of a record after one change; prompts point at these."""

    kind = models.CharField(max_length=20)
    object_id = models.BigIntegerField()
    number = models.PositiveIntegerField()
    data = models.JSONField()
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    author_label = models.CharField(max_length=254)
    message = models.CharField(max_length=200, blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta(WorkspaceOwned.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "kind", "object_id", "number"], name="revisions_numbered_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.object_id} r{self.number}"


class AuditEvent(WorkspaceOwned):
    """One verb carried out: who, what, when, before and after."""

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

"""Personal data that was removed although history is kept."""

from django.conf import settings
from django.db import models

from core.db.fields import LineField
from personas.tenancy.models import WorkspaceOwned


class Erasure(WorkspaceOwned):
    """The tombstone of one record's words; the database lets history be blanked only where one stands."""

    kind = models.CharField(max_length=20)
    object_id = models.BigIntegerField()
    reason = LineField(max_length=500)
    # The digests whose content was removed; they stay in versions, so that chains still verify.
    digests = models.JSONField(default=list)
    # Ids of the versions that held it.
    versions = models.JSONField(default=list)
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    person_label = models.CharField(max_length=254)
    at = models.DateTimeField(auto_now_add=True)

    class Meta(WorkspaceOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["workspace", "kind", "object_id"], name="erased_once")]

    def __str__(self) -> str:
        return f"{self.kind} {self.object_id}"

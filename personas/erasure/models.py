"""Model of erasures: which records were erased, by whom and why."""

from django.conf import settings
from django.db import models

from core.db.fields import LineField
from personas.tenancy.models import WorkspaceOwned


class Erasure(WorkspaceOwned):
    """Tombstone of an erased record.

    Database triggers allow the record's history to be blanked only if this row exists.
    """

    kind = models.CharField(max_length=20)
    object_id = models.BigIntegerField()
    reason = LineField(max_length=500)
    # Digests of the contents that were erased. Prompt versions keep these digests, so that hash chains can
    # still be verified.
    digests = models.JSONField(default=list)
    # Ids of the prompt versions that contained the erased text.
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

"""Models of the data that calls send: long values by digest, and the bytes stored per day."""

from django.db import models

from personas.models import Workspace, WorkspaceOwned


class CallContent(WorkspaceOwned):
    """A long value of a call, as canonical JSON. Any number of ledger rows may refer to it by its digest."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+", db_index=False)
    digest = models.CharField(max_length=64)
    size = models.PositiveIntegerField()
    # None after an erasure. The digest stays, because ledger rows refer to it.
    data = models.BinaryField(null=True)
    erased_at = models.DateTimeField(null=True, editable=False)
    # The day (UTC) of the last call that sent the value. No ledger row of a later day refers to it.
    last_used_on = models.DateField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(WorkspaceOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["workspace", "digest"], name="call_content_once")]
        indexes = [models.Index(fields=["workspace", "last_used_on"], name="call_contents_by_use")]

    def __str__(self) -> str:
        return self.digest[:12]


class DailyCallStorage(WorkspaceOwned):
    """Bytes of the daily quota that processes have reserved for call data, per workspace and day."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+", db_index=False)
    # In UTC.
    day = models.DateField()
    size = models.PositiveBigIntegerField()

    class Meta(WorkspaceOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["workspace", "day"], name="call_storage_once_a_day")]

    def __str__(self) -> str:
        return f"{self.day}: {self.size}"

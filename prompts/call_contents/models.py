"""Models of the data that calls send: values by digest, and the bytes stored per day."""

from django.db import models

from personas.models import Workspace, WorkspaceOwned


class CallContent(WorkspaceOwned):
    """A value of a call, or all its short values, as canonical JSON.

    Any number of ledger rows may refer to it by its salted digest.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+", db_index=False)
    digest = models.CharField(max_length=64)
    size = models.PositiveIntegerField()
    # Data, salt and plain digest are None after an erasure. The digest stays: ledger rows refer to it.
    data = models.BinaryField(null=True)
    # None if the digest is not salted, as in earlier releases.
    salt = models.CharField(max_length=32, null=True, editable=False)  # noqa: DJ001  # no copy of the table
    # SHA-256 of the data, to find values that are stored already.
    plain_digest = models.CharField(max_length=64, null=True, editable=False)  # noqa: DJ001  # as the salt
    erased_at = models.DateTimeField(null=True, editable=False)
    # The day (UTC) of the last call that sent the value. No ledger row of a later day refers to it.
    last_used_on = models.DateField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(WorkspaceOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["workspace", "digest"], name="call_content_once"),
            models.UniqueConstraint(
                fields=["workspace", "plain_digest"],
                condition=models.Q(plain_digest__isnull=False),
                name="salted_call_content_once",
            ),
        ]
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

"""Counters of daily limits: bytes by workspace, and everything else by person, workspace or address."""

from django.db import models

from personas.tenancy.models import WorkspaceOwned
from personas.workspaces.models import Workspace


class DailyStorage(WorkspaceOwned):
    """Bytes of the daily quota that processes have reserved for a workspace: data of calls, pushed files."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+", db_index=False)
    # In UTC.
    day = models.DateField()
    size = models.PositiveBigIntegerField()

    class Meta(WorkspaceOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["workspace", "day"], name="storage_once_a_day")]

    def __str__(self) -> str:
        return f"{self.day}: {self.size}"


class DailyUsage(models.Model):
    """How much of a daily limit a person, workspace or email address has used. It belongs to no workspace.

    An address is stored as a keyed digest, so the table tells nobody who was written to.
    """

    kind = models.CharField(max_length=32)
    subject = models.CharField(max_length=64)
    # In UTC.
    day = models.DateField()
    amount = models.PositiveBigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "subject", "day"], name="daily_usage_once_a_day")
        ]

    def __str__(self) -> str:
        return f"{self.day}: {self.kind} {self.amount}"

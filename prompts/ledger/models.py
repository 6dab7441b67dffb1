"""Every prompt handed out: one row each, sealed in blocks, rolled off only as whole blocks."""

from typing import Any

from django.conf import settings
from django.db import models

from personas.models import ApiKey, Workspace, WorkspaceOwned
from prompts.versions.models import AgentPrompt, PromptVersion

# A fetch waits for nobody: the database checks a link by locking the row it leads to, and builds hold prompts
# locked. The one statement that writes here has joined every one of these rows, and none is ever deleted.
UNCONSTRAINED_FK: dict[str, Any] = {"on_delete": models.PROTECT, "related_name": "+", "db_constraint": False}
UNINDEXED_FK: dict[str, Any] = UNCONSTRAINED_FK | {"db_index": False}


class LedgerEntry(WorkspaceOwned):
    """One prompt handed out; no row, no prompt."""

    workspace = models.ForeignKey(Workspace, **UNINDEXED_FK)
    key = models.ForeignKey(ApiKey, null=True, **UNINDEXED_FK)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, **UNINDEXED_FK)
    reader_label = models.CharField(max_length=254)
    prompt = models.ForeignKey(AgentPrompt, **UNINDEXED_FK)
    label = models.CharField(max_length=40, blank=True)
    version = models.ForeignKey(PromptVersion, **UNCONSTRAINED_FK)
    # The facts of the call, with which the segments give the served bytes again.
    slots = models.JSONField()
    served_digest = models.CharField(max_length=64)
    size = models.PositiveIntegerField()
    # 200, or 304 when the caller had these words already.
    status = models.PositiveSmallIntegerField()
    request_id = models.CharField(max_length=64)
    at = models.DateTimeField()
    seal = models.CharField(max_length=64)

    class Meta(WorkspaceOwned.Meta):
        indexes = [
            models.Index(fields=["workspace", "id"], name="ledger_in_order"),
            models.Index(fields=["workspace", "-at"], name="ledger_by_time"),
            models.Index(fields=["prompt", "-at"], name="ledger_by_prompt"),
            models.Index(fields=["workspace", "request_id"], name="ledger_by_request"),
            models.Index(fields=["key", "-at"], name="ledger_by_key"),
        ]

    def __str__(self) -> str:
        return f"{self.request_id} {self.status}"


class LedgerBlock(WorkspaceOwned):
    """A stretch of the ledger, closed: its rows' seals in order, chained to the block before."""

    sequence = models.PositiveIntegerField()
    first_id = models.BigIntegerField()
    last_id = models.BigIntegerField()
    count = models.PositiveIntegerField()
    rows = models.CharField(max_length=64)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    at = models.DateTimeField()
    previous_hash = models.CharField(max_length=64, blank=True)
    hash = models.CharField(max_length=64)

    class Meta(WorkspaceOwned.Meta):
        ordering = ["-sequence"]
        constraints = [
            models.UniqueConstraint(fields=["workspace", "sequence"], name="ledger_blocks_numbered_once")
        ]
        # From a row to the block it was closed in.
        indexes = [models.Index(fields=["workspace", "last_id"], name="ledger_blocks_by_row")]

    def __str__(self) -> str:
        return f"block {self.sequence}"


class LedgerRollOff(WorkspaceOwned):
    """A block whose rows were let go when their time was over; the database deletes no others.

    Blocks go in their order, and each note is chained to that of the block before.
    """

    block = models.OneToOneField(LedgerBlock, on_delete=models.PROTECT, related_name="roll_off")
    first_id = models.BigIntegerField()
    last_id = models.BigIntegerField()
    months = models.PositiveSmallIntegerField()
    at = models.DateTimeField()
    previous_hash = models.CharField(max_length=64, blank=True)
    hash = models.CharField(max_length=64)

    class Meta(WorkspaceOwned.Meta):
        indexes = [models.Index(fields=["workspace", "first_id", "last_id"], name="rolled_off")]

    def __str__(self) -> str:
        return f"{self.block} rolled off"


class DigestReport(WorkspaceOwned):
    """A bot's word that it ran with these bytes. Append-only; whether it is true nobody here can know."""

    prompt = models.ForeignKey(AgentPrompt, on_delete=models.PROTECT, related_name="+", db_index=False)
    key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="+", db_index=False)
    reporter_label = models.CharField(max_length=254)
    digest = models.CharField(max_length=64)
    # The version it belongs to; none when this prompt never said so.
    version = models.ForeignKey(
        PromptVersion, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    # A number and no link: rows of the ledger are let go when their months are over.
    ledger_id = models.BigIntegerField(null=True)
    request_id = models.CharField(max_length=64, blank=True)
    # Whether it was what this key had been handed last.
    is_last_handed = models.BooleanField()
    at = models.DateTimeField(auto_now_add=True)

    class Meta(WorkspaceOwned.Meta):
        indexes = [models.Index(fields=["prompt", "-at"], name="reports_by_prompt")]

    def __str__(self) -> str:
        return f"{self.prompt} {self.digest[:12]}"

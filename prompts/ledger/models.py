"""Models of the ledger: one row per served prompt, sealed in blocks; only whole blocks expire."""

from typing import Any

from django.conf import settings
from django.db import models

from personas.models import ApiKey, Workspace, WorkspaceOwned
from prompts.versions.models import AgentPrompt, PromptVersion

# Foreign keys without a database constraint: checking one locks the referenced row, and a fetch would wait
# for builds, which lock prompts. The INSERT joins every referenced row, and none of them is ever deleted.
UNCONSTRAINED_FK: dict[str, Any] = {"on_delete": models.PROTECT, "related_name": "+", "db_constraint": False}
UNINDEXED_FK: dict[str, Any] = UNCONSTRAINED_FK | {"db_index": False}


class LedgerEntry(WorkspaceOwned):
    """One served prompt; no prompt is served without its row."""

    workspace = models.ForeignKey(Workspace, **UNINDEXED_FK)
    key = models.ForeignKey(ApiKey, null=True, **UNINDEXED_FK)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, **UNINDEXED_FK)
    reader_label = models.CharField(max_length=254)
    prompt = models.ForeignKey(AgentPrompt, **UNINDEXED_FK)
    label = models.CharField(max_length=40, blank=True)
    version = models.ForeignKey(PromptVersion, **UNCONSTRAINED_FK)
    # The slots of the call; together with the version's segments they reproduce the served bytes.
    slots = models.JSONField()
    served_digest = models.CharField(max_length=64)
    size = models.PositiveIntegerField()
    # 200, or 304 when the client already had this version.
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
    """A sealed range of the ledger: a digest of its rows' seals, chained to the previous block."""

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
        # Finds the block of a row.
        indexes = [models.Index(fields=["workspace", "last_id"], name="ledger_blocks_by_row")]

    def __str__(self) -> str:
        return f"block {self.sequence}"


class LedgerRollOff(WorkspaceOwned):
    """The record of an expired block; the database lets only rows of such blocks be deleted.

    Blocks expire in order, and each record is chained to that of the previous block.
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
    """A bot's report of the digest it used. Append-only; the server cannot verify the claim."""

    prompt = models.ForeignKey(AgentPrompt, on_delete=models.PROTECT, related_name="+", db_index=False)
    key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="+", db_index=False)
    reporter_label = models.CharField(max_length=254)
    digest = models.CharField(max_length=64)
    # The version with this digest; null if the prompt has none.
    version = models.ForeignKey(
        PromptVersion, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    # Not a foreign key: ledger rows are deleted when they expire.
    ledger_id = models.BigIntegerField(null=True)
    request_id = models.CharField(max_length=64, blank=True)
    # Whether it matches the prompt last served to this key.
    is_last_handed = models.BooleanField()
    at = models.DateTimeField(auto_now_add=True)

    class Meta(WorkspaceOwned.Meta):
        indexes = [models.Index(fields=["prompt", "-at"], name="reports_by_prompt")]

    def __str__(self) -> str:
        return f"{self.prompt} {self.digest[:12]}"

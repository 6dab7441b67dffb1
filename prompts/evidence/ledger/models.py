"""Models of the ledger: one row per served prompt, grouped into hash-chained blocks.

When the retention period ends, the rows of whole blocks are deleted.
"""

from typing import Any

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from personas.models import ApiKey, Workspace, WorkspaceOwned
from personas.tenancy.fields import TenantForeignKey, TenantOneToOneField
from prompts.publishing.versions.models import AgentPrompt, PromptVersion

# Foreign keys of the ledger have no database constraint. Checking a constraint locks the referenced row, so a
# fetch would wait for builds, which lock prompts. The keys are valid without one: the INSERT joins every
# referenced row, and these rows are never deleted.
UNCONSTRAINED_FK: dict[str, Any] = {"on_delete": models.PROTECT, "related_name": "+", "db_constraint": False}
UNINDEXED_FK: dict[str, Any] = UNCONSTRAINED_FK | {"db_index": False}
# Names of discovered skills can be longer than those of records.
MAX_SKILL_NAME = 255


class LedgerEntry(WorkspaceOwned):
    """One served prompt or skill file. Nothing is served before its row is committed."""

    workspace = models.ForeignKey(Workspace, **UNINDEXED_FK)
    key = TenantForeignKey(ApiKey, null=True, **UNINDEXED_FK)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, **UNINDEXED_FK)
    reader_label = models.CharField(max_length=254)
    prompt = TenantForeignKey(AgentPrompt, **UNINDEXED_FK)
    label = models.CharField(max_length=40, blank=True)
    version = TenantForeignKey(PromptVersion, **UNCONSTRAINED_FK)
    # The time of the call, and digests of its other slot values: see prompts.proof.call_values.
    slots = models.JSONField()
    served_digest = models.CharField(max_length=64)
    size = models.PositiveIntegerField()
    # 200, or 304 when the client already had this version.
    status = models.PositiveSmallIntegerField()
    request_id = models.CharField(max_length=64)
    at = models.DateTimeField()
    seal = models.CharField(max_length=64)
    # The traceparent header of the request (W3C Trace Context), if it was valid. The client chooses its
    # value, and the seal does not cover it.
    traceparent = models.CharField(max_length=55, null=True)  # noqa: DJ001  # null: the call sent none
    # The name of the skill whose file was served; null for a prompt.
    skill = models.CharField(max_length=MAX_SKILL_NAME, null=True)  # noqa: DJ001  # part of the seal

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

    @property
    def kind(self) -> str:
        """What was served: `prompt` or `skill`."""
        return "prompt" if self.skill is None else "skill"


class LedgerBlock(WorkspaceOwned):
    """A range of ledger rows of a workspace. `rows` is a digest of their ids and seals.

    The hash of a block includes the hash of the previous block.
    """

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
        # To find the block that contains a row.
        indexes = [models.Index(fields=["workspace", "last_id"], name="ledger_blocks_by_row")]

    def __str__(self) -> str:
        return f"block {self.sequence}"


class LedgerExpiry(WorkspaceOwned):
    """Records that a block has expired and its rows were deleted.

    A database trigger allows deleting only the rows of blocks with such a record. Blocks expire in order, and
    the hash of each record includes the hash of the record for the previous block.
    """

    block = TenantOneToOneField(LedgerBlock, on_delete=models.PROTECT, related_name="expiry")
    first_id = models.BigIntegerField()
    last_id = models.BigIntegerField()
    months = models.PositiveSmallIntegerField()
    at = models.DateTimeField()
    previous_hash = models.CharField(max_length=64, blank=True)
    hash = models.CharField(max_length=64)

    class Meta(WorkspaceOwned.Meta):
        indexes = [models.Index(fields=["workspace", "first_id", "last_id"], name="ledger_expiries")]

    def __str__(self) -> str:
        return f"{self.block} expired"


class BotStatus(models.TextChoices):
    """How the text that a bot has loaded compares with the released version of its label."""

    # The bytes match no version of the prompt.
    NEVER_RELEASED = "never_released", _("Never released")
    OUTDATED = "outdated", _("Outdated")
    # The bot has never reported, or not since it was served another version.
    UNKNOWN = "unknown", _("Unknown")
    SAME = "same", _("Same")


class DigestReport(WorkspaceOwned):
    """A bot's report of the prompt digest that it used. Append-only.

    The server cannot verify that the bot really used that prompt.
    """

    prompt = TenantForeignKey(AgentPrompt, on_delete=models.PROTECT, related_name="+", db_index=False)
    key = TenantForeignKey(ApiKey, on_delete=models.PROTECT, related_name="+", db_index=False)
    client_label = models.CharField(max_length=254)
    digest = models.CharField(max_length=64)
    # The version that the digest belongs to; null if the prompt has no such version.
    version = TenantForeignKey(
        PromptVersion, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    # Not a foreign key: ledger rows are deleted when they expire.
    ledger_id = models.BigIntegerField(null=True)
    request_id = models.CharField(max_length=64, blank=True)
    # Whether the digest matches the prompt as it was last served to this key.
    is_last_served = models.BooleanField()
    # The loaded file, reason and session, the status at the time of the report, and the changed lines: see
    # prompts.evidence.drift.details.
    details = models.JSONField()
    at = models.DateTimeField(auto_now_add=True)

    class Meta(WorkspaceOwned.Meta):
        indexes = [
            models.Index(fields=["prompt", "-at"], name="reports_by_prompt"),
            # To count the bots with an unknown text.
            models.Index(
                fields=["workspace", "prompt", "key"],
                name="reports_never_released",
                condition=models.Q(version=None),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.prompt} {self.digest[:12]}"

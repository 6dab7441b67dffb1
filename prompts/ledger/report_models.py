"""What bots say they have really used."""

from django.db import models

from personas.models import ApiKey, WorkspaceOwned
from prompts.builds.models import AgentPrompt
from prompts.versions.models import PromptVersion


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

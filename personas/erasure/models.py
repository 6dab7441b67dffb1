"""Model of erasures: which records were erased, by whom and why."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from core.db.fields import LineField
from personas.tenancy.models import WorkspaceOwned
from personas.workspaces.models import Workspace


class ErasureProgress(models.TextChoices):
    """Progress of an erasure. The text is gone from records and prompts in both states."""

    REBUILDING = "rebuilding", _("Rebuilding prompts")
    DONE = "done", _("Done")


class Erasure(WorkspaceOwned):
    """Tombstone of an erased record.

    Database triggers allow the record's history to be blanked only if this row exists.
    """

    kind = models.CharField(max_length=20)
    object_id = models.BigIntegerField()
    reason = LineField(max_length=500)
    # Digests of contents with the erased text. Prompt versions keep these digests, so that hash chains can
    # still be verified. The data of a content is kept while a version without an erased record uses it.
    digests = models.JSONField(default=list)
    # Ids of the prompt versions that contained the erased text.
    versions = models.JSONField(default=list)
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    author_label = models.CharField(max_length=254)
    at = models.DateTimeField(auto_now_add=True)
    # Set while prompts are rebuilt. Meanwhile, labels may point to versions that are no longer served.
    rebuilding_since = models.DateTimeField(null=True)
    # The erased texts, until a worker has searched the data of calls for them. None if that is done.
    pending_texts = models.JSONField(null=True)

    class Meta(WorkspaceOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["workspace", "kind", "object_id"], name="erased_once")]
        indexes = [
            models.Index(
                fields=["rebuilding_since"],
                condition=models.Q(rebuilding_since__isnull=False),
                name="erasures_to_finish",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.object_id}"

    @property
    def status(self) -> ErasureProgress:
        return ErasureProgress.REBUILDING if self.rebuilding_since else ErasureProgress.DONE


class ErasureCounter(WorkspaceOwned):
    """How often tombstones of a workspace were written. Database triggers on Erasure count.

    Caches of served text are valid only while this number is unchanged. It has a table of its own: the row
    is locked until an erasure is committed, and many other transactions lock the row of the workspace.
    """

    workspace = models.OneToOneField(Workspace, on_delete=models.PROTECT, related_name="+")
    number = models.PositiveBigIntegerField(default=0)

    class Meta(WorkspaceOwned.Meta):
        pass

    def __str__(self) -> str:
        return f"{self.workspace_id}: {self.number}"

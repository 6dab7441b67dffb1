"""Models of labels: PromptLabel (current position), LabelMove (append-only history) and LabelRule."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from personas.models import WorkspaceOwned
from personas.tenancy.fields import TenantForeignKey
from personas.workspaces.models import slug_validator
from prompts.publishing.versions.models import AgentPrompt, PromptVersion

LATEST, PRODUCTION = "latest", "production"


class MoveReason(models.TextChoices):
    """Why a label was moved. The rules for each reason are in prompts.publishing.labels.approval."""

    BUILD = "build", _("Build")
    RELEASE = "release", _("Release")
    OVERRIDE = "override", _("Release without approval")
    ROLLBACK = "rollback", _("Rollback")
    MOVED = "moved", _("Moved by a member")
    REMOVED = "removed", _("Removed")
    ERASURE = "erasure", _("Erasure")


class PromptLabel(WorkspaceOwned):
    """A label of a prompt: a named, movable pointer to one of its versions."""

    prompt = TenantForeignKey(AgentPrompt, on_delete=models.PROTECT, related_name="labels")
    name = models.SlugField(max_length=40, db_index=False, validators=[slug_validator])
    version = TenantForeignKey(PromptVersion, on_delete=models.PROTECT, related_name="labels")
    moved_at = models.DateTimeField()

    class Meta(WorkspaceOwned.Meta):
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["prompt", "name"], name="label_once_per_prompt"),
            # Needed by the upsert in `write_labels`, which names these columns as its conflict target.
            models.UniqueConstraint(fields=["workspace", "id"], name="labels_by_workspace"),
        ]

    def __str__(self) -> str:
        return f"{self.prompt} {self.name}"


class LabelMove(WorkspaceOwned):
    """A move of a label to a version; a null version means that the label was removed.

    Append-only. The moves of a prompt form a hash chain.
    """

    # No index of its own: the unique index on prompt and sequence serves queries by prompt.
    prompt = TenantForeignKey(
        AgentPrompt, on_delete=models.PROTECT, related_name="label_moves", db_index=False
    )
    sequence = models.PositiveIntegerField()
    label = models.CharField(max_length=40)
    version = TenantForeignKey(PromptVersion, null=True, on_delete=models.PROTECT, related_name="+")
    previous_version = TenantForeignKey(
        PromptVersion, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    # A value of MoveReason.
    reason = models.CharField(max_length=20)
    note = models.CharField(max_length=500, blank=True)
    release = TenantForeignKey("Release", null=True, on_delete=models.PROTECT, related_name="moves")
    author_label = models.CharField(max_length=254)
    at = models.DateTimeField()
    previous_hash = models.CharField(max_length=64, blank=True)
    hash = models.CharField(max_length=64)

    class Meta(WorkspaceOwned.Meta):
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["prompt", "sequence"], name="label_moves_numbered_once")
        ]
        indexes = [models.Index(fields=["prompt", "label", "-at"], name="label_moves_by_time")]

    def __str__(self) -> str:
        return f"{self.prompt} {self.label} → {self.version_id}"


class LabelRule(WorkspaceOwned):
    """Whether a label is protected. Only owners may move a protected label, on all prompts of a workspace."""

    name = models.SlugField(max_length=40, db_index=False, validators=[slug_validator])
    is_protected = models.BooleanField(default=False)

    class Meta(WorkspaceOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="label_rule_once")]

    def __str__(self) -> str:
        return self.name

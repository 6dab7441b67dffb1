"""Models of integrity: signed checkpoints, signing keys and verification runs."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from personas.models import WorkspaceOwned


class Checkpoint(WorkspaceOwned):
    """A signed summary of all hash chains of a workspace at one time; a copy is kept in a file."""

    sequence = models.PositiveIntegerField()
    body = models.JSONField()
    # The chain heads that the body summarizes: all of them, or only those that changed since the previous
    # checkpoint; see prompts.proof.chain_heads.
    heads = models.JSONField()
    at = models.DateTimeField()
    previous_hash = models.CharField(max_length=64, blank=True)
    hash = models.CharField(max_length=64)
    key_id = models.CharField(max_length=16)
    signature = models.CharField(max_length=128)

    class Meta(WorkspaceOwned.Meta):
        ordering = ["-sequence"]
        constraints = [
            models.UniqueConstraint(fields=["workspace", "sequence"], name="checkpoints_numbered_once")
        ]

    def __str__(self) -> str:
        return f"checkpoint {self.sequence}"


class SigningKey(WorkspaceOwned):
    """A public key that signed checkpoints of the workspace; kept so that old signatures can be verified."""

    key_id = models.CharField(max_length=16)
    public_key = models.CharField(max_length=200)
    # Time of the first checkpoint signed with this key.
    first_used_at = models.DateTimeField()

    class Meta(WorkspaceOwned.Meta):
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["workspace", "key_id"], name="signing_key_once")]

    def __str__(self) -> str:
        return self.key_id


class VerificationStatus(models.TextChoices):
    """State of a verification run."""

    QUEUED = "queued", _("Waiting for a worker")
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    FAILED = "failed", _("Not finished")


class VerificationRun(WorkspaceOwned):
    """A verification of all hash chains of a workspace, requested by a member and run by a worker."""

    status = models.CharField(
        max_length=7, choices=VerificationStatus.choices, default=VerificationStatus.QUEUED
    )
    requested_label = models.CharField(max_length=254)
    requested_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    # WorkspaceVerification.to_json(): rows per table, faults, notes, seconds.
    result = models.JSONField(default=dict)
    # Why the run failed; shown to users.
    problem = models.CharField(max_length=300, blank=True)

    class Meta(WorkspaceOwned.Meta):
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["workspace"],
                condition=Q(status__in=["queued", "running"]),
                name="one_open_verification",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_status_display()} ({self.requested_at:%Y-%m-%d %H:%M})"

    @property
    def is_over(self) -> bool:
        return self.status in {VerificationStatus.DONE, VerificationStatus.FAILED}

"""Signed statements of how far the record had come: a cut tail or a rewrite shows against them."""

from django.db import models

from personas.models import WorkspaceOwned


class Checkpoint(WorkspaceOwned):
    """The heads of all chains of a workspace at one moment, signed; a copy lies in a file."""

    sequence = models.PositiveIntegerField()
    body = models.JSONField()
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

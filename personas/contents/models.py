"""Bytes kept once per workspace, named by their digest."""

from hashlib import sha256

from django.db import models

from personas.tenancy.models import WorkspaceOwned


class Content(WorkspaceOwned):
    """What a file or a piece of a prompt says; many rows may point here, none of them owns it."""

    digest = models.CharField(max_length=64)
    size = models.PositiveIntegerField()
    # None once it was erased: the digest then stands for words that nobody can read any more.
    data = models.BinaryField(null=True)
    erased_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(WorkspaceOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["workspace", "digest"], name="content_once")]

    def __str__(self) -> str:
        return self.digest[:12]

    @property
    def text(self) -> str:
        """The words; what is stored as text was checked to be UTF-8 first."""
        return bytes(self.data or b"").decode()


def sha256_digest(data: bytes) -> str:
    return sha256(data).hexdigest()

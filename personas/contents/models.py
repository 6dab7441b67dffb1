"""Content-addressed storage: bytes stored once per workspace under their SHA-256 digest."""

from hashlib import sha256

from django.db import models

from personas.tenancy.models import WorkspaceOwned


class Content(WorkspaceOwned):
    """The bytes of a file or a prompt segment. Any number of files and versions may share a content."""

    digest = models.CharField(max_length=64)
    size = models.PositiveIntegerField()
    # None after the erasure of personal data. The digest stays.
    data = models.BinaryField(null=True)
    erased_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(WorkspaceOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["workspace", "digest"], name="content_once")]

    def __str__(self) -> str:
        return self.digest[:12]

    @property
    def text(self) -> str:
        """The data decoded as UTF-8, or an empty string after erasure.

        Decoding cannot fail, because text is checked to be UTF-8 before it is stored.
        """
        return bytes(self.data or b"").decode()


def sha256_digest(data: bytes) -> str:
    return sha256(data).hexdigest()

"""Content-addressed storage: bytes stored once per workspace under their digest."""

from hashlib import sha256

from django.db import models

from personas.tenancy.models import WorkspaceOwned


class Content(WorkspaceOwned):
    """The bytes of a file or of a part of a prompt. Any number of files and versions may refer to a content.

    Files, and lists of digests, have the plain SHA-256 as their digest. What prompts are made of has a salted
    digest, because it may be erased, and short texts can be guessed from a plain digest.
    """

    digest = models.CharField(max_length=64)
    size = models.PositiveIntegerField()
    # Data, salt and plain digest are None after the erasure of personal data. The digest stays.
    data = models.BinaryField(null=True)
    # None if the digest is not salted.
    salt = models.CharField(max_length=32, null=True, editable=False)  # noqa: DJ001  # no copy of the table
    # SHA-256 of the data of a salted content, to find content that is stored already.
    plain_digest = models.CharField(max_length=64, null=True, editable=False)  # noqa: DJ001  # as the salt
    erased_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(WorkspaceOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["workspace", "digest"], name="content_once"),
            # With a condition, SQLite adds an index and does not copy the table.
            models.UniqueConstraint(
                fields=["workspace", "plain_digest"],
                condition=models.Q(plain_digest__isnull=False),
                name="salted_content_once",
            ),
        ]

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

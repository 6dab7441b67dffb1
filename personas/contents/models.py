"""Content-addressed storage: bytes stored once per workspace under their digest."""

from hashlib import sha256
from typing import Any, Self, TypeVar

from django.db import models
from django.utils import timezone

from core.salted_digests import generate_salt, salt_digest
from personas.tenancy.models import WorkspaceOwned


class ErasableContent(WorkspaceOwned):
    """Bytes that other rows refer to by their digest, and that can be erased while the digest stays.

    What may be erased has a salted digest, because short texts can be guessed from a plain one.
    """

    digest = models.CharField(max_length=64)
    size = models.PositiveIntegerField()
    # Data, salt and plain digest are None after the erasure of personal data. The digest stays.
    data = models.BinaryField(null=True)
    # None if the digest is not salted.
    salt = models.CharField(max_length=32, null=True, editable=False)  # noqa: DJ001  # null when erased
    # SHA-256 of the data if the digest is salted, to find out whether the data is already stored.
    plain_digest = models.CharField(max_length=64, null=True, editable=False)  # noqa: DJ001  # as the salt
    erased_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(WorkspaceOwned.Meta):
        abstract = True

    def __str__(self) -> str:
        return self.digest[:12]

    @classmethod
    def build_salted(cls, workspace_id: int, plain_digest: str, data: bytes, **values: Any) -> Self:
        """Build an unsaved row for data whose SHA-256 is `plain_digest`, with a new salt."""
        salt = generate_salt()
        return cls(
            workspace_id=workspace_id,
            digest=salt_digest(plain_digest, salt),
            salt=salt,
            plain_digest=plain_digest,
            size=len(data),
            data=data,
            **values,
        )


C = TypeVar("C", bound=ErasableContent)


def erase_content_rows(rows: models.QuerySet[C]) -> int:
    """Erase everything from which the data can be read or guessed; return the number of rows."""
    rows = rows.filter(erased_at=None)
    return rows.update(data=None, salt=None, plain_digest=None, erased_at=timezone.now())


class Content(ErasableContent):
    """The bytes of a file or of a part of a prompt. Any number of files and versions may refer to a content.

    Files, and lists of digests, are not erased. They have the plain SHA-256 as their digest.
    """

    class Meta(WorkspaceOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["workspace", "digest"], name="content_once"),
            # Because of the condition, SQLite adds this constraint as an index, without copying the table.
            models.UniqueConstraint(
                fields=["workspace", "plain_digest"],
                condition=models.Q(plain_digest__isnull=False),
                name="salted_content_once",
            ),
        ]

    @property
    def text(self) -> str:
        """The data decoded as UTF-8, or an empty string after erasure.

        Decoding cannot fail, because text is checked to be UTF-8 before it is stored.
        """
        return bytes(self.data or b"").decode()


def sha256_digest(data: bytes) -> str:
    return sha256(data).hexdigest()

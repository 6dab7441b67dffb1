"""Store contents (bytes): with salted digests if they may be erased, otherwise under their SHA-256."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from django.db import connection

from core.salted_digests import generate_salt, salt_digest
from personas.models import Content, Workspace

# First key of the advisory lock of a workspace's contents; the second is the workspace id.
CONTENTS_LOCK = 1_703
# Digests in one query. SQLite limits the number of parameters.
CHUNK_SIZE = 5_000


class SaltedDigest(NamedTuple):
    """The digest under which a content is stored, and its salt."""

    digest: str
    salt: str


class SaltedDigests:
    """The salted digests of contents by their plain SHA-256, as far as they were looked up or stored.

    Use an object within one transaction only.

    Equal data has one salted digest per workspace until it is erased. After that, the same data gets a new
    salt and so another digest: what refers to the erased content stays without text.
    """

    def __init__(self, workspace: Workspace | int) -> None:
        self.workspace_id = workspace if isinstance(workspace, int) else workspace.pk
        self.by_plain: dict[str, SaltedDigest] = {}
        self.missing: set[str] = set()
        self.is_locked = False

    def lock(self) -> None:
        """Keep retention from deleting contents until the end of the transaction."""
        if not self.is_locked:
            lock_contents(self.workspace_id, is_shared=True)
            self.is_locked = True

    def find(self, plain_digests: Iterable[str]) -> None:
        """Look up the contents that have these plain digests. To refer to them, call `lock` before."""
        unknown = {digest for digest in plain_digests if digest not in self.by_plain} - self.missing
        for chunk in split_digests(unknown):
            rows = Content.objects.in_workspace(self.workspace_id).filter(plain_digest__in=chunk)
            for plain, digest, salt in rows.values_list("plain_digest", "digest", "salt"):
                self.by_plain[plain or ""] = SaltedDigest(digest, salt or "")
        self.missing |= unknown - self.by_plain.keys()

    def store(self, data: Mapping[str, bytes]) -> None:
        """Store contents, given by their plain digest. Those that the workspace already has are skipped.

        Call it in the transaction that also writes what refers to the contents.
        """
        self.lock()
        self.find(data)
        new = self.missing & data.keys()
        if not new:
            return
        rows = Content.objects.in_workspace(self.workspace_id)
        # A concurrent transaction may store the same data with another salt. Its row is read then.
        rows.bulk_create(
            [build_salted_content(self.workspace_id, plain, data[plain]) for plain in sorted(new)],
            ignore_conflicts=True,
        )
        self.missing -= new
        self.find(new)


def build_salted_content(workspace_id: int, plain_digest: str, data: bytes) -> Content:
    salt = generate_salt()
    return Content(
        workspace_id=workspace_id,
        digest=salt_digest(plain_digest, salt),
        salt=salt,
        plain_digest=plain_digest,
        size=len(data),
        data=data,
    )


def store_contents(workspace: Workspace | int, data: Mapping[str, bytes]) -> None:
    """Store contents without erasable text, given by their SHA-256. Existing ones are skipped.

    Call it in the transaction that also writes what refers to the contents. Until its end, retention deletes
    no content of the workspace.
    """
    if not data:
        return
    workspace_id = workspace if isinstance(workspace, int) else workspace.pk
    lock_contents(workspace_id, is_shared=True)
    rows = Content.objects.in_workspace(workspace_id)
    existing = {
        digest
        for chunk in split_digests(data)
        for digest in rows.filter(digest__in=chunk).values_list("digest", flat=True)
    }
    missing = [
        Content(workspace_id=workspace_id, digest=digest, size=len(content), data=content)
        for digest, content in data.items()
        if digest not in existing
    ]
    if missing:
        # Ignore conflicts: a concurrent transaction may insert the same digest, and both rows would be equal.
        rows.bulk_create(missing, ignore_conflicts=True)


def split_digests(digests: Iterable[str]) -> Iterator[Sequence[str]]:
    remaining = iter(sorted(digests))
    while chunk := list(islice(remaining, CHUNK_SIZE)):
        yield chunk


def lock_contents(workspace_id: int, *, is_shared: bool) -> None:
    """Take the advisory lock of a workspace's contents until the end of the transaction.

    Those who store contents share the lock; retention takes it alone. So no content is deleted between the
    check that it exists and the commit of what refers to it. SQLite runs one writer at a time instead.
    """
    if connection.vendor != "postgresql":
        return
    function = "pg_advisory_xact_lock_shared" if is_shared else "pg_advisory_xact_lock"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s, %s)", [CONTENTS_LOCK, workspace_id % 2**31])

"""Verify contents: the data of each row matches its digest, or a recorded erasure removed it."""

from collections.abc import Iterator
from hashlib import sha256

from core.salted_digests import salt_digest
from personas.models import Content, Erasure, Workspace
from prompts.evidence.integrity.verify.row_stream import iterate_rows
from prompts.proof.faults import Fault
from prompts.proof_rows import RowLike

TABLE = "content"
COLUMNS = ("digest", "size", "data", "salt", "plain_digest", "erased_at")
# Rows fetched at a time: fewer than for other tables, because a content can be as large as a file.
CONTENT_CHUNK_SIZE = 100


def verify_contents(workspace: Workspace) -> Iterator[Fault | None]:
    erased = list_erased_digests(workspace)
    rows = Content.objects.in_workspace(workspace).order_by("digest")
    for row in iterate_rows(rows, COLUMNS, TABLE, chunk=CONTENT_CHUNK_SIZE):
        yield row if isinstance(row, Fault) else verify_content(row, erased)


def list_erased_digests(workspace: Workspace) -> set[str]:
    rows = Erasure.objects.in_workspace(workspace).values_list("digests", flat=True)
    return {digest for digests in rows for digest in digests}


def verify_content(row: RowLike, erased: set[str]) -> Fault | None:
    reason = describe_erasure_fault(row, erased) if row.data is None else describe_content_fault(row)
    return Fault(TABLE, f"content {str(row.digest)[:16]}…", reason) if reason else None


def describe_erasure_fault(row: RowLike, erased: set[str]) -> str:
    if row.digest not in erased or row.erased_at is None:
        return "its text is missing, but there is no erasure"
    return describe_left_salt(row)


def describe_left_salt(row: RowLike) -> str:
    """Describe an erasure that left something from which the text can be guessed; empty if there is none."""
    return "its text was erased, but its salt or plain digest was not" if row.salt or row.plain_digest else ""


def describe_content_fault(row: RowLike) -> str:
    if not isinstance(row.data, bytes | memoryview):
        return "its text is not stored as bytes"
    data = bytes(row.data)
    plain_digest = sha256(data).hexdigest()
    if salt_digest(plain_digest, row.salt or "") != row.digest:
        return "its text does not match its digest"
    if row.plain_digest not in (None, plain_digest):
        return "its text does not match its plain digest"
    if len(data) != row.size:
        return f"it has {len(data)} bytes, but its row states {row.size}"
    return "it is marked as erased, but its text is still stored" if row.erased_at else ""

"""Contents: the words behind every digest are those the digest was made of, or were erased by someone."""

from collections.abc import Iterator
from hashlib import sha256

from personas.models import Content, Erasure, Workspace
from prompts.hashed_rows import Columns
from prompts.integrity.verify.row_stream import each_row
from prompts.proof.faults import Fault

TABLE = "content"
COLUMNS = ("digest", "size", "data", "erased_at")
# Some are as long as a file may be.
FEW = 100


def judge_contents(workspace: Workspace) -> Iterator[Fault | None]:
    tombs = erased_digests(workspace)
    rows = Content.objects.in_workspace(workspace).order_by("digest")
    for row in each_row(rows, COLUMNS, TABLE, chunk=FEW):
        yield row if isinstance(row, Fault) else fault_of(row, tombs)


def erased_digests(workspace: Workspace) -> set[str]:
    rows = Erasure.objects.in_workspace(workspace).values_list("digests", flat=True)
    return {digest for digests in rows for digest in digests}


def fault_of(row: Columns, tombs: set[str]) -> Fault | None:
    reason = why_erased(row, tombs) if row.data is None else why_other(row)
    return Fault(TABLE, f"content {str(row.digest)[:16]}…", reason) if reason else None


def why_erased(row: Columns, tombs: set[str]) -> str:
    if row.digest in tombs and row.erased_at is not None:
        return ""
    return "its words are gone, and no erasure says so"


def why_other(row: Columns) -> str:
    if not isinstance(row.data, bytes | memoryview):
        return "its words are not kept as bytes"
    data = bytes(row.data)
    if sha256(data).hexdigest() != row.digest:
        return "its words do not match its digest"
    if len(data) != row.size:
        return f"it is {len(data)} bytes long, and its row says {row.size}"
    return "it is said to be erased, and its words are there" if row.erased_at else ""

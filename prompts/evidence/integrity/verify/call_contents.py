"""Verify the long values of calls: each matches its digest, and those that ledger rows name are stored."""

from collections.abc import Iterator
from contextlib import suppress

from personas.models import Workspace
from prompts.evidence.integrity.verify.contents import (
    COLUMNS,
    CONTENT_CHUNK_SIZE,
    describe_content_fault,
    describe_left_salt,
)
from prompts.evidence.integrity.verify.row_stream import READ_ERRORS, iterate_rows
from prompts.models import CallContent
from prompts.proof.call_values import get_value_digests
from prompts.proof.faults import Fault
from prompts.proof_rows import RowLike

CALL_CONTENT_TABLE = "call-content"


class CallContentVerifier:
    """Collect the digests that ledger rows name, and compare them with the stored contents."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        # The first ledger row that names each digest.
        self.named: dict[str, int] = {}

    def add_row(self, row: RowLike) -> None:
        """Collect the digests of a ledger row. If they cannot be read, its seal does not match either."""
        with suppress(*READ_ERRORS):
            for digest in get_value_digests(row.slots).values():
                self.named.setdefault(str(digest), row.id)

    def verify_stored(self) -> Iterator[Fault | None]:
        rows = CallContent.objects.in_workspace(self.workspace).order_by("digest")
        for row in iterate_rows(rows, COLUMNS, CALL_CONTENT_TABLE, chunk=CONTENT_CHUNK_SIZE):
            if isinstance(row, Fault):
                yield row
                continue
            self.named.pop(row.digest, None)
            yield build_content_fault(row)

    def find_missing(self) -> list[Fault]:
        """Return a fault for each digest that a ledger row names and that is not stored.

        Call it after `verify_stored`.
        """
        return [
            Fault(
                CALL_CONTENT_TABLE,
                f"call content {digest[:16]}…",
                f"it is missing, but ledger row {row_id} refers to it",
            )
            for digest, row_id in self.named.items()
        ]


def build_content_fault(row: RowLike) -> Fault | None:
    if row.data is None:
        reason = (
            describe_left_salt(row)
            if row.erased_at is not None
            else "its value is missing, but it is not marked as erased"
        )
    else:
        reason = describe_content_fault(row)
    return Fault(CALL_CONTENT_TABLE, f"call content {str(row.digest)[:16]}…", reason) if reason else None

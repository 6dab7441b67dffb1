"""Verify hash chains in constant memory and report every row that was changed, added, moved or removed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from prompts.proof.faults import Fault, FaultSummary, summarize_faults
from prompts.proof.hashed_rows import R, StoredRow


@dataclass(frozen=True)
class ChainAnchor:
    """A trusted row after which verification starts."""

    chain: tuple[int | None, ...]
    place: int
    hash: str


def verify_chain(rows: Iterable[StoredRow[R] | Fault], after: ChainAnchor | None = None) -> FaultSummary:
    """Verify the rows of one table, which must be sorted by chain and place.

    With `after`, verification starts after that row instead of at the start of the first chain.
    """
    return summarize_faults(iterate_chain_faults(rows, after))


def iterate_chain_faults(
    rows: Iterable[StoredRow[R] | Fault], after: ChainAnchor | None = None
) -> Iterator[Fault | None]:
    """Yield one item for every row: its fault, or None if it is sound.

    The row after a bad row is compared with the stored hash of the bad row, so that one bad row does not make
    all later rows bad. A row that could not be read is a fault already and is yielded unchanged.
    """
    chain, place, head = (after.chain, after.place, after.hash) if after else ((), 0, "")
    for item in rows:
        if isinstance(item, Fault):
            yield item
            continue
        row, stored, previous = item
        if row.chain != chain:
            chain, place, head = row.chain, 0, ""
        yield find_row_fault(row, stored, previous, place, head)
        place, head = row.place, stored


def find_row_fault(row: R, stored: str, previous: str, place: int, head: str) -> Fault | None:
    """Return the fault of a row, or None. The previous row is at `place` and has the stored hash `head`."""
    if row.place != place + 1:
        return build_misplaced_fault(row, place)
    try:
        if row.hash(previous) != stored:
            return Fault(row.table, row.name, "its content does not match its hash")
    except ValueError as error:
        return Fault(row.table, row.name, f"its content cannot be hashed: {error}")
    if previous != head:
        return Fault(row.table, row.name, describe_broken_link(row))
    return None


def describe_broken_link(row: R) -> str:
    if row.place == 1:
        return "it is the first of its chain, but names a previous hash"
    return f"it does not name the hash of {row.format_name(row.place - 1)}: one of the two was rewritten"


def build_misplaced_fault(row: R, place: int) -> Fault:
    if row.place > place + 1:
        missing = row.place - place - 1
        more = f", along with {missing - 1} after it" if missing > 1 else ""
        before = f"{place} is followed by {row.place}" if place else f"the chain begins with {row.place}"
        return Fault(row.table, row.format_name(place + 1), f"it is missing{more}: {before}")
    reason = f"it is in the position of {place + 1}: it was added or moved"
    return Fault(row.table, row.name, reason)


def verify_chain_span(rows: Iterable[StoredRow[R]]) -> FaultSummary:
    """Verify a span of a chain that may begin at any place.

    The hash that the first row names as its previous hash is trusted.
    """
    remaining = iter(rows)
    first = next(remaining, None)
    if first is None:
        return FaultSummary(0)
    row, _, previous = first
    start = ChainAnchor(row.chain, row.place - 1, previous)
    return summarize_faults(
        iterate_chain_faults((link for links in ([first], remaining) for link in links), start)
    )

"""Walks chains of rows in constant memory and names every row that does not stand as it was written."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from prompts.proof.faults import Fault, FaultSummary, summarize_faults
from prompts.proof.hashed_rows import R, StoredRow


@dataclass(frozen=True)
class ChainAnchor:
    """A row already trusted, after which a walk begins."""

    chain: tuple[int | None, ...]
    place: int
    hash: str


def verify_chain(rows: Iterable[StoredRow[R] | Fault], after: ChainAnchor | None = None) -> FaultSummary:
    """Rows of one table with their stored hash and stored previous, chain by chain, in order of place."""
    return summarize_faults(iterate_chain_faults(rows, after))


def iterate_chain_faults(
    rows: Iterable[StoredRow[R] | Fault], after: ChainAnchor | None = None
) -> Iterator[Fault | None]:
    """For every row its fault or None; a bad row is taken as it stands, so that others are judged apart.

    A row that could not even be read comes as a fault, and is passed on.
    """
    chain, place, head = (after.chain, after.place, after.hash) if after else ((), 0, "")
    for each in rows:
        if isinstance(each, Fault):
            yield each
            continue
        row, stored, previous = each
        if row.chain != chain:
            chain, place, head = row.chain, 0, ""
        yield find_row_fault(row, stored, previous, place, head)
        place, head = row.place, stored


def find_row_fault(row: R, stored: str, previous: str, place: int, head: str) -> Fault | None:
    """What is wrong with a row that should follow the one at `place`, whose hash is `head`."""
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
        return "it is the first of its chain, and yet names a hash before it"
    return f"it does not name the hash of {row.named(row.place - 1)}: one of the two was written anew"


def build_misplaced_fault(row: R, place: int) -> Fault:
    if row.place > place + 1:
        gone = row.place - place - 1
        more = f" with {gone - 1} after it" if gone > 1 else ""
        before = f"{place} is followed by {row.place}" if place else f"the chain begins with {row.place}"
        return Fault(row.table, row.named(place + 1), f"it is missing{more}: {before}")
    reason = f"it stands where {place + 1} belongs: added, or moved from its place"
    return Fault(row.table, row.name, reason)


def verify_chain_span(rows: Iterable[StoredRow[R]]) -> FaultSummary:
    """A stretch from anywhere in a chain: what stands before its first row is taken as given."""
    waiting = iter(rows)
    first = next(waiting, None)
    if first is None:
        return FaultSummary(0)
    row, _, previous = first
    start = ChainAnchor(row.chain, row.place - 1, previous)
    return summarize_faults(
        iterate_chain_faults((each for some in ([first], waiting) for each in some), start)
    )

"""Holds ledger rows against their seals and the blocks they were closed in, in constant memory."""

from collections.abc import Iterable, Iterator

from prompts.proof.canonical import ListDigest
from prompts.proof.faults import Fault, FaultSummary, summarize_faults
from prompts.proof.hashed_rows import LEDGER_ROWS_DOMAIN, LedgerBlockRow, LedgerRow

# A row that could not even be read comes as a fault, and is passed on.
SealedRow = tuple[LedgerRow, str] | Fault


def verify_ledger(
    blocks: Iterable[LedgerBlockRow], rows: Iterable[SealedRow], rolled_off: int = 0
) -> FaultSummary:
    """One workspace's ledger: its blocks in order, its rows with their stored seals in order of id.

    The blocks' own chain is `verify_chain`'s business. Blocks up to the sequence `rolled_off` may have lost
    all of their rows to retention. Rows after the last block stand in none yet: only their seals are checked.
    """
    return summarize_faults(iterate_ledger_faults(blocks, rows, rolled_off))


def iterate_ledger_faults(
    blocks: Iterable[LedgerBlockRow], rows: Iterable[SealedRow], rolled_off: int = 0
) -> Iterator[Fault | None]:
    """For every row and every block its fault or None."""
    waiting = LedgerRowQueue(rows)
    for block in blocks:
        inside = ListDigest(LEDGER_ROWS_DOMAIN)
        for each in waiting.up_to(block.last_id):
            if isinstance(each, Fault):
                yield each
            elif each[0].id < block.first_id:
                yield build_outside_fault(each[0], block)
            else:
                yield find_seal_fault(*each)
                inside.add((each[0].id, each[1]))
        yield find_block_fault(block, inside, is_kept=block.sequence > rolled_off)
    for each in waiting.up_to(None):
        yield each if isinstance(each, Fault) else find_seal_fault(*each)


class LedgerRowQueue:
    """Rows that are taken as far as a block reaches, and then wait for the next."""

    def __init__(self, rows: Iterable[SealedRow]) -> None:
        self.rows = iter(rows)
        self.next = next(self.rows, None)

    def up_to(self, last_id: int | None) -> Iterator[SealedRow]:
        while self.next and (last_id is None or isinstance(self.next, Fault) or self.next[0].id <= last_id):
            yield self.next
            self.next = next(self.rows, None)


def build_outside_fault(row: LedgerRow, block: LedgerBlockRow) -> Fault:
    return Fault(row.table, row.name, f"it stands in no block, though {block.name} comes after it")


def find_seal_fault(row: LedgerRow, seal: str) -> Fault | None:
    try:
        matches = row.seal() == seal
    except ValueError as error:
        return Fault(row.table, row.name, f"its content cannot be hashed: {error}")
    return None if matches else Fault(row.table, row.name, "its content does not match its seal")


def find_block_fault(block: LedgerBlockRow, inside: ListDigest, *, is_kept: bool) -> Fault | None:
    if not (is_kept or inside.count):
        return None
    if inside.count != block.count:
        reason = f"it was closed over {block.count} rows, and {inside.count} are there"
        return Fault(block.table, block.name, reason)
    if inside.hexdigest() != block.rows:
        span = f"{block.first_id} to {block.last_id}"
        return Fault(block.table, block.name, f"its rows, {span}, are not those it was closed over")
    return None

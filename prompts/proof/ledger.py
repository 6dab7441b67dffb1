"""Holds ledger rows against their seals and the blocks they were closed in, in constant memory."""

from collections.abc import Iterable, Iterator

from prompts.proof.canonical import ListDigest
from prompts.proof.faults import Fault, Verdict, verdict
from prompts.proof.rows import LEDGER_ROWS, LedgerBlockRow, LedgerRow

Sealed = tuple[LedgerRow, str]


def verify_ledger(blocks: Iterable[LedgerBlockRow], rows: Iterable[Sealed], rolled_off: int = 0) -> Verdict:
    """One workspace's ledger: its blocks in order, its rows with their stored seals in order of id.

    The blocks' own chain is `verify_chain`'s business. Blocks up to the sequence `rolled_off` may have lost
    all of their rows to retention. Rows after the last block stand in none yet: only their seals are checked.
    """
    return verdict(judge_ledger(blocks, rows, rolled_off))


def judge_ledger(
    blocks: Iterable[LedgerBlockRow], rows: Iterable[Sealed], rolled_off: int = 0
) -> Iterator[Fault | None]:
    """For every row and every block its fault or None."""
    waiting = iter(rows)
    sealed = next(waiting, None)
    for block in blocks:
        inside = ListDigest(LEDGER_ROWS)
        while sealed and sealed[0].id <= block.last_id:
            row, seal = sealed
            if row.id < block.first_id:
                yield Fault(row.table, row.name, f"it stands in no block, though {block.name} comes after it")
            else:
                yield seal_fault(row, seal)
                inside.add((row.id, seal))
            sealed = next(waiting, None)
        yield block_fault(block, inside, is_kept=block.sequence > rolled_off)
    while sealed:
        yield seal_fault(*sealed)
        sealed = next(waiting, None)


def seal_fault(row: LedgerRow, seal: str) -> Fault | None:
    try:
        matches = row.seal() == seal
    except ValueError as error:
        return Fault(row.table, row.name, f"its content cannot be hashed: {error}")
    return None if matches else Fault(row.table, row.name, "its content does not match its seal")


def block_fault(block: LedgerBlockRow, inside: ListDigest, *, is_kept: bool) -> Fault | None:
    if not (is_kept or inside.count):
        return None
    if inside.count != block.count:
        reason = f"it was closed over {block.count} rows, and {inside.count} are there"
        return Fault(block.table, block.name, reason)
    if inside.hexdigest() != block.rows:
        span = f"{block.first_id} to {block.last_id}"
        return Fault(block.table, block.name, f"its rows, {span}, are not those it was closed over")
    return None

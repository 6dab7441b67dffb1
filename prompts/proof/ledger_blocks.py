"""Verify ledger rows against their seals and blocks, in constant memory.

A seal is the hash of one ledger row. A block contains a digest of the ids and seals of a span of rows.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from prompts.proof.canonical import ListDigest
from prompts.proof.faults import Fault, FaultSummary, summarize_faults
from prompts.proof.hashed_rows import LEDGER_ROWS_DOMAIN, LedgerBlockRow, LedgerRow

# A row with its stored seal. A row that could not be read is a fault instead, which is reported unchanged.
SealedRow = tuple[LedgerRow, str] | Fault
# Age at which a row is put into a block. It is longer than the statement timeout, so every INSERT that got a
# smaller id has been committed or has failed by then.
SETTLE_DELAY = timedelta(seconds=60)
# Differences between the clocks of several servers, and the time between a fetch and its INSERT, are less
# than this. A larger difference means that a clock was wrong.
CLOCK_TOLERANCE = timedelta(minutes=5)
TIME_TABLE = "ledger-time"


def get_settled_at(at: datetime) -> datetime:
    """Return the time from which a row of this time can be put into a block. Raise ValueError on overflow."""
    try:
        return at + SETTLE_DELAY
    except OverflowError:
        raise ValueError("A ledger row cannot have a time at the end of the year 9999.") from None


class LedgerTimes:
    """Find blocks with rows whose time contradicts their place in the ledger, because a clock was wrong.

    A row must not be later than the time at which its block was closed, nor earlier than the blocks before
    it. At most two faults are reported, each with the first block and the number of blocks: a clock that was
    wrong for a day would otherwise hide all other faults.
    """

    def __init__(self) -> None:
        self.newest: datetime | None = None
        self.first_blocks: dict[str, LedgerBlockRow] = {}
        self.counts: dict[str, int] = {}

    def watch(self, blocks: Iterable[LedgerBlockRow]) -> Iterator[LedgerBlockRow]:
        """Pass the blocks on and check the times of each. They are sorted by sequence."""
        for block in blocks:
            self.add(block)
            yield block

    def add(self, block: LedgerBlockRow) -> None:
        # Differences and not sums, because a sum may overflow for a tampered time.
        if block.last_at - block.at > CLOCK_TOLERANCE:
            self._count("it has rows later than the time at which it was closed", block)
        if self.newest is not None and self.newest - block.first_at > CLOCK_TOLERANCE:
            self._count("it has rows earlier than those of a block before it", block)
        if block.last_at <= block.at:
            self.newest = max(block.last_at, self.newest or block.last_at)

    def _count(self, reason: str, block: LedgerBlockRow) -> None:
        self.first_blocks.setdefault(reason, block)
        self.counts[reason] = self.counts.get(reason, 0) + 1

    def list_faults(self) -> list[Fault]:
        return [
            Fault(
                TIME_TABLE,
                self.first_blocks[reason].name,
                f"{reason}: a clock was wrong (blocks with such rows: {count:,})",
            )
            for reason, count in self.counts.items()
        ]


def verify_ledger(
    blocks: Iterable[LedgerBlockRow], rows: Iterable[SealedRow], last_expired: int = 0
) -> FaultSummary:
    """Verify the ledger of one workspace. `blocks` are sorted by sequence, `rows` by id.

    The hash chain of the blocks is not verified here but by `verify_chain`. Blocks with a sequence up to
    `last_expired` may have no rows: these were deleted after the retention period. Rows after the last block
    are not in a block yet: only their seals are checked.
    """
    return summarize_faults(iterate_ledger_faults(blocks, rows, last_expired))


def iterate_ledger_faults(
    blocks: Iterable[LedgerBlockRow], rows: Iterable[SealedRow], last_expired: int = 0
) -> Iterator[Fault | None]:
    """Yield one item for every row and every block: its fault, or None if it is sound."""
    queue = LedgerRowQueue(rows)
    for block in blocks:
        row_digest = ListDigest(LEDGER_ROWS_DOMAIN)
        for item in queue.take_up_to(block.last_id):
            if isinstance(item, Fault):
                yield item
            elif item[0].id < block.first_id:
                yield build_outside_fault(item[0], block)
            else:
                yield find_seal_fault(*item)
                row_digest.add((item[0].id, item[1]))
        yield find_block_fault(block, row_digest, is_kept=block.sequence > last_expired)
    for item in queue.take_up_to(None):
        yield item if isinstance(item, Fault) else find_seal_fault(*item)


class LedgerRowQueue:
    """A stream of rows that is consumed block by block."""

    def __init__(self, rows: Iterable[SealedRow]) -> None:
        self.rows = iter(rows)
        self.next = next(self.rows, None)

    def take_up_to(self, last_id: int | None) -> Iterator[SealedRow]:
        while self.next and (last_id is None or isinstance(self.next, Fault) or self.next[0].id <= last_id):
            yield self.next
            self.next = next(self.rows, None)


def build_outside_fault(row: LedgerRow, block: LedgerBlockRow) -> Fault:
    return Fault(row.table, row.name, f"it is in no block, although {block.name} comes after it")


def find_seal_fault(row: LedgerRow, seal: str) -> Fault | None:
    try:
        matches = row.seal() == seal
    except ValueError as error:
        return Fault(row.table, row.name, f"its content cannot be hashed: {error}")
    return None if matches else Fault(row.table, row.name, "its content does not match its seal")


def find_block_fault(block: LedgerBlockRow, row_digest: ListDigest, *, is_kept: bool) -> Fault | None:
    if not (is_kept or row_digest.count):
        return None
    if row_digest.count != block.count:
        reason = f"it was closed with {block.count} rows, but has {row_digest.count}"
        return Fault(block.table, block.name, reason)
    if row_digest.hexdigest() != block.rows:
        span = f"{block.first_id} to {block.last_id}"
        return Fault(block.table, block.name, f"its rows, {span}, do not match its digest")
    return None

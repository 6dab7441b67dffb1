"""A small, fixed history of versions, label moves and ledger rows, as stored in the database."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from prompts.proof.canonical import canonical_digest, text_digest
from prompts.proof.chain_heads import ChainHead, ChainHeads, sort_heads
from prompts.proof.chains import iterate_chain_faults
from prompts.proof.checkpoint_comparison import StoredHashes
from prompts.proof.checkpoints import CheckpointStatement, ExpiryMark, LedgerMark
from prompts.proof.faults import Fault
from prompts.proof.hashed_rows import (
    ExpiryRow,
    LabelMoveRow,
    LedgerBlockRow,
    LedgerRow,
    VersionRow,
    ledger_rows_digest,
)
from prompts.proof.ledger_blocks import iterate_ledger_faults
from prompts.proof.signing_keys import PrivateKey

WORKSPACE = 1
AT = datetime(2026, 3, 7, 14, 55, 5, 250_000, UTC)
KEY = PrivateKey.from_private_bytes(bytes(range(32)))
# The number of versions by agent and channel, including chains of a single row.
CHAINS = {(3, None): 4, (3, 2): 7, (5, 2): 5, (8, 1): 1, (9, None): 1}
MOVES = {(3, None): 1, (3, 2): 7, (5, 2): 4}
BLOCKS, ROWS_IN_A_BLOCK, ROLLED_OFF = 4, 10, 2


def version(number, agent=3, channel=2, **changes) -> VersionRow:
    text = f"Version {number} of {agent} on {channel}"
    values = {
        "workspace": WORKSPACE,
        "agent": agent,
        "channel": channel,
        "number": number,
        "digest": text_digest(f"{text}, whole"),
        "segments": canonical_digest("segments", [{"content": text_digest(text), "section": "soul"}]),
        "text": text_digest(text),
        "tools": text_digest("[]") if number % 2 else "",
        "sizes": canonical_digest("sizes", {"characters": 18, "tokens": 6, "sections": {"soul": [18, 6]}}),
        "lockfile": canonical_digest("lockfile", {"soul": text_digest(text)}),
        "report": text_digest("{}"),
        "layout": "dramatis",
        "compiler": "1",
        "causes": [{"kind": "soul", "id": 12, "revision": number, "was": None, "by": ["alice", True]}],
        "author": "user:1",
        "message": "Warmer words — häufig",
        "at": AT + timedelta(minutes=number),
    }
    return VersionRow(**(values | changes))


def move(sequence, agent=3, channel=2, **changes) -> LabelMoveRow:
    values = {
        "workspace": WORKSPACE,
        "agent": agent,
        "channel": channel,
        "sequence": sequence,
        "label": "production",
        "version": 40 + sequence if sequence % 4 else None,
        "number": sequence if sequence % 4 else None,
        "previous_version": 39 + sequence if sequence > 1 else None,
        "previous_number": sequence - 1 if sequence > 1 else None,
        "reason": "rollback",
        "note": "Answers were too long" if sequence % 2 else "",
        "release": 6 if sequence % 2 else None,
        "author": "user:2",
        "at": AT + timedelta(minutes=sequence),
    }
    return LabelMoveRow(**(values | changes))


def served_row(nth, **changes) -> LedgerRow:
    """Build a ledger row. Ids have gaps: all workspaces share the sequence, and some transactions fail."""
    values = {
        "workspace": WORKSPACE,
        "id": 16 * nth,
        "key": "key:4",
        "agent": 3,
        "channel": 2 if nth % 3 else None,
        "label": "production",
        "version": 47,
        "number": 7,
        "slots": canonical_digest("slots", {"day": "Saturday"}),
        "served": text_digest(f"Text {nth}"),
        "size": 4_096 + nth,
        "status": 200 if nth % 5 else 304,
        "request_id": f"req-{nth}",
        "at": AT + timedelta(seconds=nth),
    }
    return LedgerRow(**(values | changes))


def block_of(sequence, sealed, **changes) -> LedgerBlockRow:
    """Build the block over these rows and seals."""
    pairs = [(row.id, seal) for row, seal in sealed]
    first, last = pairs[0][0], pairs[-1][0]
    at = AT + timedelta(hours=sequence)
    values = {"workspace": WORKSPACE, "sequence": sequence, "first_id": first, "last_id": last, "at": at}
    values |= {"first_at": sealed[0][0].at, "last_at": sealed[-1][0].at}
    return LedgerBlockRow(**(values | {"count": len(pairs), "rows": ledger_rows_digest(pairs)} | changes))


def let_go(block, **changes) -> ExpiryRow:
    values = {"workspace": WORKSPACE, "block": block.sequence, "first_id": block.first_id, "months": 6}
    values |= {"last_id": block.last_id, "at": AT + timedelta(days=200 + block.sequence)}
    return ExpiryRow(**(values | changes))


def chained(rows) -> list[tuple]:
    """Return the rows with the hashes they get when written one after the other."""
    stored, chain, head = [], None, ""
    for row in rows:
        head = head if row.chain == chain else ""
        chain = row.chain
        stored.append((row, row.hash(head), head))
        head = stored[-1][1]
    return stored


def unhashed(stored) -> list:
    return [row for row, *_ in stored]


@dataclass
class Record:
    """Five tables; each row is a tuple of the hashed columns and the stored hashes."""

    versions: list = field(default_factory=list)
    moves: list = field(default_factory=list)
    ledger: list = field(default_factory=list)
    blocks: list = field(default_factory=list)
    expiries: list = field(default_factory=list)

    def copy(self) -> "Record":
        return Record(*(list(rows) for rows in vars(self).values()))


def record() -> Record:
    """Build the unmodified history."""
    files = [{"name": "tea", "content": text_digest("Boil water."), "size": 11, "origin": {}}]
    versions = [
        version(n, *chain, skill_files=files) for chain, count in CHAINS.items() for n in range(1, count + 1)
    ]
    skills = {4: "tea"}
    ledger = [served_row(n, skill=skills.get(n % 5)) for n in range(1, BLOCKS * ROWS_IN_A_BLOCK + 1)]
    moves = [move(n, *chain) for chain, count in MOVES.items() for n in range(1, count + 1)]
    return written(versions, moves, ledger)


def written(versions, moves, ledger) -> Record:
    stored = Record(chained(versions), chained(moves), [(row, row.seal()) for row in ledger])
    blocks = closed(stored.ledger)
    stored.blocks, stored.expiries = chained(blocks), chained(map(let_go, blocks[:ROLLED_OFF]))
    return stored


def closed(sealed) -> list[LedgerBlockRow]:
    starts = range(0, len(sealed), ROWS_IN_A_BLOCK)
    return [block_of(at // ROWS_IN_A_BLOCK + 1, sealed[at : at + ROWS_IN_A_BLOCK]) for at in starts]


def rewritten(old: Record) -> Record:
    """Return the history with changed rows and all hashes recomputed."""
    versions = [version(row.number, row.agent, row.channel, message="Colder") for row, *_ in old.versions]
    moves = [move(row.sequence, row.agent, row.channel, reason="moved") for row, *_ in old.moves]
    return written(versions, moves, [served_row(row.id // 16, key="key:9") for row, *_ in old.ledger])


# --- reading it back -----------------------------------------------------------------------------------


def by_place(stored):
    return stored[0].workspace, *[(part is not None, part or 0) for part in stored[0].chain], stored[0].place


def by_id(stored):
    return stored[0].workspace, stored[0].id


def faults_in(
    stored: Record, tables=("versions", "moves", "ledger", "blocks", "expiries")
) -> Iterable[Fault]:
    """Verify each table in the order of the queries and yield the faults."""
    for table in ("versions", "moves", "blocks", "expiries"):
        if table in tables:
            yield from filter(None, iterate_chain_faults(sorted(getattr(stored, table), key=by_place)))
    if "ledger" in tables or "blocks" in tables:
        blocks = unhashed(sorted(stored.blocks, key=by_place))
        for workspace, rows in groupby(
            sorted(stored.ledger, key=by_id), key=lambda sealed: sealed[0].workspace
        ):
            mine = [block for block in blocks if block.workspace == workspace]
            yield from filter(None, iterate_ledger_faults(mine, rows))


def heads_of(stored: Record) -> ChainHeads:
    return ChainHeads(ends_of(stored.versions), ends_of(stored.moves))


def ends_of(rows) -> tuple[ChainHead, ...]:
    heads = {
        row.chain: ChainHead(row.agent, row.channel, row.place, hashed)
        for row, hashed, _ in sorted(rows, key=by_place)
    }
    return sort_heads(heads.values())


def checkpoint_of(stored: Record, **changes: Any) -> CheckpointStatement:
    versions, moves = heads_of(stored).summarize()
    block, expiry = stored.blocks[-1], stored.expiries[-1]
    values: dict[str, Any] = {
        "workspace": WORKSPACE,
        "at": AT + timedelta(days=1),
        "versions": versions,
        "label_moves": moves,
        "ledger": LedgerMark(block[0].sequence, block[1], block[0].last_id),
        "expiries": ExpiryMark(expiry[0].block, expiry[1]),
        "previous": "",
    }
    return CheckpointStatement(**(values | changes))


def present(stored: Record) -> StoredHashes:
    return StoredHashes(
        versions={(row.agent, row.channel, row.number): hashed for row, hashed, _ in stored.versions},
        label_moves={(row.agent, row.channel, row.sequence): hashed for row, hashed, _ in stored.moves},
        blocks={row.sequence: hashed for row, hashed, _ in stored.blocks},
        expiries={row.block: hashed for row, hashed, _ in stored.expiries},
    )

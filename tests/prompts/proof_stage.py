"""A small, fixed record of versions, label moves and ledger, as a database would hold it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from prompts.proof.canonical import digest, text_digest
from prompts.proof.chains import judge_chain
from prompts.proof.checkpoints import Checkpoint, Head, LedgerMark, Mark
from prompts.proof.comparing import Present
from prompts.proof.faults import Fault
from prompts.proof.keys import PrivateKey
from prompts.proof.ledger import judge_ledger
from prompts.proof.rows import LabelMoveRow, LedgerBlockRow, LedgerRow, VersionRow, rows_digest

WORKSPACE = 1
AT = datetime(2026, 3, 7, 14, 55, 5, 250_000, UTC)
KEY = PrivateKey.from_private_bytes(bytes(range(32)))
# Agent and channel, and how many versions there are; chains of one row have nothing around them to hold them.
CHAINS = {(3, None): 4, (3, 2): 7, (5, 2): 5, (8, 1): 1, (9, None): 1}
MOVES, BLOCKS, ROWS_IN_A_BLOCK = 12, 4, 10


def version(number, agent=3, channel=2, **changes) -> VersionRow:
    words = f"Version {number} of {agent} on {channel}"
    values = {
        "workspace": WORKSPACE,
        "agent": agent,
        "channel": channel,
        "number": number,
        "digest": text_digest(f"{words}, whole"),
        "segments": digest("segments", [{"content": text_digest(words), "section": "soul"}]),
        "text": text_digest(words),
        "lockfile": digest("lockfile", {"soul": text_digest(words)}),
        "report": digest("report", {"problems": []}),
        "layout": "dramatis",
        "compiler": "1",
        "cause": {"kind": "soul", "id": 12, "revision": number, "was": None, "by": ["alice", True]},
        "author": "user:1",
        "message": "Warmer words — häufig",
        "at": AT + timedelta(minutes=number),
    }
    return VersionRow(**(values | changes))


def move(sequence, **changes) -> LabelMoveRow:
    values = {
        "workspace": WORKSPACE,
        "sequence": sequence,
        "agent": 3,
        "channel": 2 if sequence % 3 else None,
        "label": "production",
        "version": 40 + sequence if sequence % 4 else None,
        "previous_version": 39 + sequence if sequence > 1 else None,
        "reason": "Answers were too long",
        "release": 6 if sequence % 2 else None,
        "author": "user:2",
        "at": AT + timedelta(minutes=sequence),
    }
    return LabelMoveRow(**(values | changes))


def handed_out(nth, **changes) -> LedgerRow:
    """Ids have gaps: the counter is shared by all workspaces, and some transactions fail."""
    values = {
        "workspace": WORKSPACE,
        "id": 16 * nth,
        "key": "key:4",
        "agent": 3,
        "channel": 2 if nth % 3 else None,
        "label": "production",
        "version": 47,
        "number": 7,
        "slots": digest("slots", {"day": "Saturday"}),
        "served": text_digest(f"Text {nth}"),
        "size": 4_096 + nth,
        "status": 200 if nth % 5 else 304,
        "request_id": f"req-{nth}",
        "at": AT + timedelta(seconds=nth),
    }
    return LedgerRow(**(values | changes))


def block_of(sequence, sealed, **changes) -> LedgerBlockRow:
    """The block closed over these rows and seals."""
    pairs = [(row.id, seal) for row, seal in sealed]
    first, last = pairs[0][0], pairs[-1][0]
    at = AT + timedelta(hours=sequence)
    values = {"workspace": WORKSPACE, "sequence": sequence, "first_id": first, "last_id": last, "at": at}
    return LedgerBlockRow(**(values | {"count": len(pairs), "rows": rows_digest(pairs)} | changes))


def chained(rows) -> list[tuple]:
    """The rows with the hashes they get when they are written one after the other."""
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
    """Four tables; a row is the columns that are hashed, then the columns that hold the hashes."""

    versions: list = field(default_factory=list)
    moves: list = field(default_factory=list)
    ledger: list = field(default_factory=list)
    blocks: list = field(default_factory=list)

    def copy(self) -> "Record":
        return Record(*(list(rows) for rows in vars(self).values()))


def record() -> Record:
    """Everything as it was written."""
    versions = [version(n, *chain) for chain, count in CHAINS.items() for n in range(1, count + 1)]
    ledger = [handed_out(n) for n in range(1, BLOCKS * ROWS_IN_A_BLOCK + 1)]
    made = Record(chained(versions), chained(map(move, range(1, MOVES + 1))))
    made.ledger = [(row, row.seal()) for row in ledger]
    made.blocks = chained(closed(made.ledger))
    return made


def closed(sealed) -> list[LedgerBlockRow]:
    starts = range(0, len(sealed), ROWS_IN_A_BLOCK)
    return [block_of(at // ROWS_IN_A_BLOCK + 1, sealed[at : at + ROWS_IN_A_BLOCK]) for at in starts]


def rewritten(old: Record) -> Record:
    """Someone changed a word in the first rows and computed every hash anew, from there to the end."""
    versions = [version(row.number, row.agent, row.channel, message="Colder") for row, *_ in old.versions]
    moves = [move(row.sequence, reason="Nothing") for row, *_ in old.moves]
    ledger = [handed_out(row.id // 16, key="key:9") for row, *_ in old.ledger]
    made = Record(chained(versions), chained(moves), [(row, row.seal()) for row in ledger])
    made.blocks = chained(closed(made.ledger))
    return made


# --- reading it back -----------------------------------------------------------------------------------


def by_place(stored):
    return stored[0].workspace, *[(part is not None, part or 0) for part in stored[0].chain], stored[0].place


def by_id(stored):
    return stored[0].workspace, stored[0].id


def faults_in(held: Record, tables=("versions", "moves", "ledger", "blocks")) -> Iterable[Fault]:
    """What the walks find, each table in the order a query gives it."""
    for table in ("versions", "moves", "blocks"):
        if table in tables:
            yield from filter(None, judge_chain(sorted(getattr(held, table), key=by_place)))
    if "ledger" in tables or "blocks" in tables:
        blocks = unhashed(sorted(held.blocks, key=by_place))
        for workspace, rows in groupby(
            sorted(held.ledger, key=by_id), key=lambda sealed: sealed[0].workspace
        ):
            mine = [block for block in blocks if block.workspace == workspace]
            yield from filter(None, judge_ledger(mine, rows))


def checkpoint_of(held: Record, **changes: Any) -> Checkpoint:
    heads = {
        (row.agent, row.channel): Head(row.agent, row.channel, row.number, h) for row, h, _ in held.versions
    }
    last, block = held.moves[-1], held.blocks[-1]
    values: dict[str, Any] = {
        "workspace": WORKSPACE,
        "at": AT + timedelta(days=1),
        "heads": tuple(heads.values()),
        "label_moves": Mark(last[0].sequence, last[1]),
        "ledger": LedgerMark(block[0].sequence, block[1], block[0].last_id),
        "previous": "",
    }
    return Checkpoint(**(values | changes))


def present(held: Record) -> Present:
    return Present(
        versions={(row.agent, row.channel, row.number): hashed for row, hashed, _ in held.versions},
        label_moves={row.sequence: hashed for row, hashed, _ in held.moves},
        blocks={row.sequence: hashed for row, hashed, _ in held.blocks},
    )

"""Flip random bytes of stored columns; the verification must detect each."""

import json
import re
from collections import Counter
from dataclasses import fields, replace
from datetime import datetime, timedelta
from random import Random

from prompts.proof import checkpoint_comparison
from tests.prompts.proof.proof_stage import Record, checkpoint_of, faults_in, heads_of, present, record

CHAINED = ("hash", "previous")
HASHES = {
    "versions": CHAINED,
    "moves": CHAINED,
    "blocks": CHAINED,
    "expiries": CHAINED,
    "ledger": ("seal",),
}


def columns(stored: Record) -> list[tuple[str, str]]:
    """List every stored column of every table."""
    names = {table: [each.name for each in fields(rows[0][0])] for table, rows in vars(stored).items()}
    return [(table, name) for table in names for name in (*names[table], *HASHES[table])]


class Dice:
    """Flip bytes with a fixed seed, and collect the flips that were missed or reported for another row."""

    def __init__(self, seed: int = 9) -> None:
        self.random = Random(seed)  # noqa: S311  # repeatable, and no secret
        self.stored = record()
        self.checkpoint, self.heads = checkpoint_of(self.stored), heads_of(self.stored)
        self.columns = columns(self.stored)
        self.thrown: Counter[tuple[str, str]] = Counter()
        self.missed: list[str] = []
        self.misnamed: list[str] = []

    def throw(self, count, *, only=None, rehash=False) -> "Dice":
        for _ in range(count):
            table, column = self.random.choice(only or self.columns)
            rows = getattr(self.stored, table)
            place = self.random.randrange(len(rows))
            old = rows[place]
            new = rehashed(old, self.flip_row(old, column)) if rehash else self.flip_row(old, column)
            self.thrown[table, column] += 1
            self.judge(table, place, old, new, column, is_moved=rehash or column in {"id", "workspace"})
        return self

    def flip_row(self, stored, column):
        row, *hashes = stored
        names = HASHES[
            next(table for table, rows in vars(self.stored).items() if type(rows[0][0]) is type(row))
        ]
        if column in names:
            place = names.index(column)
            hashes[place] = self.flip(hashes[place])
            return row, *hashes
        return replace(row, **{column: self.flip(getattr(row, column))}), *hashes

    def judge(self, table, place, old, new, column, *, is_moved):
        changed = self.stored.copy()
        getattr(changed, table)[place] = new
        fault = next(iter(faults_in(changed, (table,))), None)
        # Looked up by name each time, so that a patched function is used.
        fault = fault or next(
            iter(checkpoint_comparison.compare_checkpoint(self.checkpoint, self.heads, present(changed))),
            None,
        )
        description = f"{column} of {old[0].name}: {old} became {new}"
        if fault is None:
            self.missed.append(description)
        elif not names_it(str(fault), old[0], new[0], is_moved=is_moved):
            self.misnamed.append(f"{fault} ({description})")

    # --- one byte --------------------------------------------------------------------------------------

    def flip(self, value):
        if value is None:
            return self.random.randrange(1, 100)
        if isinstance(value, str):
            return self.flip_text(value)
        if isinstance(value, int):
            return int.from_bytes(self.flip_byte(value.to_bytes(8, "big", signed=True)), "big", signed=True)
        if isinstance(value, datetime):
            return value + timedelta(microseconds=self.random.choice((-1, 1)) << self.random.randrange(40))
        return self.flip_json(value)

    def flip_byte(self, data: bytes) -> bytes:
        place = self.random.randrange(len(data))
        return data[:place] + bytes([data[place] ^ 1 << self.random.randrange(8)]) + data[place + 1 :]

    def flip_text(self, text: str) -> str:
        """Flip a byte so that the text stays valid UTF-8, as databases require; an empty text becomes "x"."""
        while text:
            try:
                return self.flip_byte(text.encode()).decode()
            except UnicodeDecodeError:
                pass
        return "x"

    def flip_json(self, value):
        while True:
            try:
                flipped = json.loads(self.flip_text(json.dumps(value)))
            except ValueError:
                continue
            if isinstance(flipped, type(value)) and json.dumps(flipped) != json.dumps(value):
                return flipped


def rehashed(old, new):
    """Recompute the hash of the changed row, but not those of the following rows."""
    row, *hashes = new
    return (row, row.seal()) if len(hashes) == 1 else (row, row.hash(old[2]), old[2])


def names_it(message: str, old, new, *, is_moved) -> bool:
    """Tell whether a message names the row, the gap it left, or the block of a lost ledger row."""
    # No digit may follow: move 1 is not move 12.
    if any(re.search(rf"{name}(?!\d)", message) for name in (old.name, new.name)):
        return True
    if hasattr(new, "place"):
        return message.endswith((f"with {new.place}", f"followed by {new.place}"))
    return is_moved and message.startswith("ledger block")

"""One prompt handed out and everything that proves it, the same every time."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from prompts.proof.canonical import canonical_digest, canonical_json, text_digest
from prompts.proof.chain_heads import ChainHead, ChainHeads
from prompts.proof.checkpoints import CheckpointStatement, LedgerMark, sign_statement
from prompts.proof.evidence import build_evidence_bundle
from prompts.proof.evidence_reader import EvidenceSegment, LabelPointer
from prompts.proof.hashed_rows import LOCKFILE_DOMAIN, SEGMENTS_DOMAIN, SLOTS_DOMAIN
from tests.prompts.proof.proof_stage import AT, KEY, WORKSPACE, block_of, chained, handed_out, move, version

GOLDEN = Path(__file__).parent / "golden" / "evidence.json"
WORDS = ("You are Iris, who keeps the harbour's books.", "\n", "Today is a day.")
SAID = "You are Iris, who keeps the harbour's books.\nToday is Saturday."
# As the assembly wrote it, and so to the letter: its digest is over these very words.
GIVEN = '{"before":"Today is ","share":0.5}'
SLOT_VALUES = {"day": "Saturday"}
STORED: list[dict[str, Any]] = [
    {
        "content": text_digest(WORDS[0]),
        "section": "identity",
        "origin": {"kind": "identity", "id": "12", "revision": 4},
    },
    {"text": WORDS[1], "section": "identity"},
    {
        "content": text_digest(WORDS[2]),
        "section": "now",
        "slot": "day",
        "span": 1,
        "given": text_digest(GIVEN),
    },
]
PARTS = {"identity:12@4": STORED[0]["content"], "soul:3@1": text_digest("Be kind.")}
LOCKED = {
    "layout": "dramatis",
    "digest": text_digest(canonical_json(PARTS).decode()),
    "base": 1,
    "parts": {"identity:12@4": STORED[0]["content"]},
    "gone": [],
}


def fill(segments, slots):
    """What the assembly would do: a slot's words are those of the call."""
    return "".join(
        f"{json.loads(segment.given)['before']}{slots['day']}." if segment.given else segment.text
        for segment in segments
    )


class Case:
    """The parts of a bundle, to be spoiled one at a time and put together again by someone who knows how."""

    def __init__(self) -> None:
        self.text, self.slots, self.lockfile, self.told = SAID, SLOT_VALUES, LOCKED, PARTS
        self.segments = [EvidenceSegment(each, text) for each, text in zip(STORED, WORDS, strict=True)]
        self.segments[2] = self.segments[2]._replace(given=GIVEN)
        self.version = version(
            2,
            digest=canonical_digest("build", [STORED, WORDS]),
            segments=canonical_digest(SEGMENTS_DOMAIN, STORED),
            text=text_digest("".join(WORDS)),
            lockfile=canonical_digest(LOCKFILE_DOMAIN, LOCKED),
            report=text_digest('{"problems":[]}'),
        )
        self.ledger = handed_out(
            5,
            number=2,
            slots=canonical_digest(SLOTS_DOMAIN, SLOT_VALUES),
            served=text_digest(SAID),
            size=len(SAID.encode()),
            status=200,
        )
        # Asked for as it stood between the second move and the third.
        self.label, self.moment = "production", AT + timedelta(minutes=2, seconds=30)
        self.signed_at = AT + timedelta(days=1)
        self.key = KEY

    def sealed(self):
        """Three blocks of four rows; the row in question stands in the second."""
        rows = [self.ledger if number == 5 else handed_out(number) for number in range(1, 13)]
        return [(row, row.seal()) for row in rows]

    def parts(self):
        sealed = self.sealed()
        versions = chained([version(1), self.version, version(3)])
        blocks = chained(block_of(n, sealed[4 * n - 4 : 4 * n]) for n in (1, 2, 3))
        moves = chained(map(move, (1, 2, 3)))
        heads = self.heads(versions, moves)
        checkpoint = CheckpointStatement(
            WORKSPACE,
            self.signed_at,
            *heads.summarize(),
            ledger=LedgerMark(3, blocks[-1][1], blocks[-1][0].last_id),
        )
        return {
            "text": self.text,
            "served": text_digest(SAID),
            "slots": self.slots,
            "versions": versions[1:],
            "segments": self.segments,
            "lockfile": self.lockfile,
            "parts": self.told,
            "pointer": LabelPointer(self.label, self.moment, moves[1:]),
            "ledger": (self.ledger, self.ledger.seal()),
            "block_rows": [(row.id, seal) for row, seal in sealed[4:8]],
            "blocks": blocks[1:],
            "signed": (sign_statement(checkpoint, self.key, heads), self.key.public_key()),
        }

    def heads(self, versions, moves) -> ChainHeads:
        other = chained([version(1, 9, None)])[0][1]
        return ChainHeads(
            (ChainHead(3, 2, 3, versions[-1][1]), ChainHead(9, None, 1, other)),
            (ChainHead(3, 2, 3, moves[-1][1]),),
        )

    def bundle(self, **changes):
        return build_evidence_bundle(**(self.parts() | changes))

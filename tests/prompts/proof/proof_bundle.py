"""A fixed evidence bundle for one served prompt, for tests."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from core.salted_digests import salt_digest
from prompts.proof.call_values import CONTENTS_KEY, list_value_salts
from prompts.proof.canonical import canonical_digest, canonical_json, text_digest
from prompts.proof.chain_heads import ChainHead, ChainHeads
from prompts.proof.checkpoints import CheckpointStatement, LedgerMark, sign_statement
from prompts.proof.evidence import build_evidence_bundle
from prompts.proof.evidence_reader import EvidenceSegment, LabelPointer
from prompts.proof.hashed_rows import LOCKFILE_DOMAIN, SEGMENTS_DOMAIN, SLOTS_DOMAIN
from prompts.proof.text_salts import combine_input_salts, combine_served_salts, combine_text_salts
from tests.prompts.proof.proof_stage import AT, KEY, WORKSPACE, block_of, chained, move, served_row, version

GOLDEN = Path(__file__).parent / "golden" / "evidence.json"
TEXTS = ("You are Iris, who keeps the harbour's books.", "\n", "Today is a day.")
SERVED_TEXT = "You are Iris, who keeps the harbour's books.\nToday is Saturday."
# Exactly as written by the assembly, because its digest is over these bytes.
SLOT_DATA = '{"before":"Today is ","share":0.5}'
# Definitions exactly as stored: the digest in the version is over these bytes.
TOOLS = '[{"name":"read_ledger","description":"Read a page of the books.","parameters":{"type":"object"}}]'
SLOT_VALUES: dict[str, Any] = {"day": "Saturday"}


def get_salt(text: str) -> str:
    """Return a fixed salt for the text, so that the bundle is always the same."""
    return text_digest(f"salt of {text}")[:32]


def salted(text: str) -> str:
    """Return the salted digest of the text."""
    return salt_digest(text_digest(text), get_salt(text))


def list_salts(*texts: str) -> dict[str, str]:
    return {salted(text): get_salt(text) for text in texts}


STORED: list[dict[str, Any]] = [
    {
        "content": salted(TEXTS[0]),
        "section": "identity",
        "origin": {"kind": "identity", "id": "12", "revision": 4},
    },
    {"text": TEXTS[1], "section": "identity"},
    {
        "content": salted(TEXTS[2]),
        "section": "now",
        "slot": "day",
        "span": 1,
        "given": salted(SLOT_DATA),
    },
]
PARTS = {"identity:12@4": STORED[0]["content"], "soul:3@1": salted("Be kind.")}
LOCKED = {
    "layout": "dramatis",
    "digest": text_digest(canonical_json(PARTS).decode()),
    "base": 1,
    "parts": {"identity:12@4": STORED[0]["content"]},
    "gone": [],
}


def fill(bundle):
    """Fill slots with the values of the call, like the assembly does."""
    return "".join(
        f"{json.loads(segment.given)['before']}{bundle.call_values['day']}."
        if segment.given
        else segment.text
        for segment in bundle.segments
    )


class Case:
    """The parts of a bundle; tests change one part and build a consistent bundle from the result."""

    def __init__(self) -> None:
        self.text, self.lockfile, self.lockfile_parts = SERVED_TEXT, LOCKED, PARTS
        self.slots: dict[str, Any] = SLOT_VALUES
        self.slot_contents: dict[str, str] | None = None
        self.segments = [EvidenceSegment(each, text) for each, text in zip(STORED, TEXTS, strict=True)]
        self.tools: str | None = None
        self.inputs: dict[str, str] | None = None
        self.salts = list_salts(TEXTS[0], TEXTS[2], SLOT_DATA)
        self.segments[2] = self.segments[2]._replace(given=SLOT_DATA)
        self.version = version(
            2,
            digest=canonical_digest("build", [STORED, TEXTS]),
            segments=canonical_digest(SEGMENTS_DOMAIN, STORED),
            text=salt_digest(text_digest("".join(TEXTS)), combine_text_salts(STORED, self.salts)),
            lockfile=canonical_digest(LOCKFILE_DOMAIN, LOCKED),
            report=salted('{"problems":[]}'),
        )
        self.ledger = served_row(
            5,
            number=2,
            slots=canonical_digest(SLOTS_DOMAIN, SLOT_VALUES),
            served=self.get_served_digest(),
            size=len(SERVED_TEXT.encode()),
            status=200,
        )
        # A time between the second move and the third.
        self.label, self.label_at = "production", AT + timedelta(minutes=2, seconds=30)
        self.signed_at = AT + timedelta(days=1)
        self.key = KEY

    def get_served_digest(self) -> str:
        inputs = combine_input_salts(self.inputs, self.salts) if self.inputs else ""
        values = list_value_salts(self.slots, self.salts)
        salt = combine_served_salts(combine_text_salts(STORED, self.salts), inputs, values)
        return salt_digest(text_digest(SERVED_TEXT), salt)

    def with_tools(self) -> "Case":
        """Give the version tool definitions."""
        self.version, self.tools = replace(self.version, tools=salted(TOOLS)), TOOLS
        self.salts |= list_salts(TOOLS)
        return self

    def with_inputs(self) -> "Case":
        """Give the bundle the inputs of the version: a manifest with one part and a list of one part."""
        part, memory = '{"text":"Be kind."}', '{"text":"Likes tea."}'
        memories = json.dumps([salted(memory)])
        manifest = json.dumps({"soul": {"part": salted(part)}, "memories": {"parts": text_digest(memories)}})
        self.inputs = {salted(text): text for text in (part, memory)}
        # Lists and manifest have no salts.
        self.inputs |= {text_digest(text): text for text in (manifest, memories)}
        self.salts |= list_salts(part, memory)
        self.lockfile = LOCKED | {"inputs": text_digest(manifest)}
        lockfile = canonical_digest(LOCKFILE_DOMAIN, self.lockfile)
        self.version = replace(self.version, lockfile=lockfile)
        self.ledger = replace(self.ledger, served=self.get_served_digest())
        return self

    def with_long_value(self) -> "Case":
        """Store a slot value apart from the ledger row."""
        text = json.dumps(SLOT_VALUES["day"])
        self.slots, self.slot_contents = {CONTENTS_KEY: {"day": salted(text)}}, {salted(text): text}
        self.salts |= list_salts(text)
        slots = canonical_digest(SLOTS_DOMAIN, self.slots)
        self.ledger = replace(self.ledger, slots=slots, served=self.get_served_digest())
        return self

    def sealed(self):
        """Return the rows of three blocks of four rows; the row in question is in the second block."""
        rows = [self.ledger if number == 5 else served_row(number) for number in range(1, 13)]
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
            "served": self.ledger.served,
            "slots": self.slots,
            "slot_contents": self.slot_contents,
            "versions": versions[1:],
            "segments": self.segments,
            "tools": self.tools,
            "inputs": self.inputs,
            "salts": self.salts,
            "lockfile": self.lockfile,
            "parts": self.lockfile_parts,
            "pointer": LabelPointer(self.label, self.label_at, moves[1:]),
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

"""Puts together what proves a replay to someone without this database."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from prompts.hashed_rows import block_row, ledger_row, line_of, move_row, version_row
from prompts.integrity.checkpoints import heads_at
from prompts.models import Checkpoint, LabelMove, LedgerBlock, LedgerEntry, PromptVersion, SigningKey
from prompts.proof import evidence, evidence_reader
from prompts.proof.chain_heads import Head, Heads
from prompts.proof.checkpoints import SignedCheckpoint
from prompts.proof.hashed_rows import LabelMoveRow, LedgerBlockRow, Stored, VersionRow
from prompts.proof.signing_keys import PublicKey, load_public
from prompts.replay.rebuild_text import fill_again
from prompts.replay.services import Replay
from prompts.versions.segments import digests_in
from prompts.versions.selectors import contents_of, parts_of

# Some of the first checkpoints after a build may have been signed while it was not there for all to see.
CANDIDATES = 10


class Signed(NamedTuple):
    """The checkpoint that covers a replay, with the heads it sums up."""

    row: Checkpoint
    heads: Heads
    key: PublicKey


def evidence_of(replay: Replay) -> dict[str, Any]:
    """The bundle as JSON-ready data; what cannot be proved yet, or any more, is left out of it."""
    entry, block = replay.entry, block_of(replay.entry) if replay.entry else None
    signed = covering(replay, block)
    words = replay.text if entry and replay.is_exact else None
    return evidence.bundle(
        text=words,
        served=entry.served_digest if entry else None,
        slots=entry.slots if entry else None,
        versions=versions_from(replay, signed),
        segments=segments_of(replay.version),
        lockfile=replay.version.lockfile,
        parts=parts_of(replay.version),
        pointer=None if entry else pointer_of(replay, signed),
        ledger=(ledger_row(entry), entry.seal) if entry else None,
        block_rows=pairs_in(block) if block else (),
        blocks=blocks_from(block, signed) if block else (),
        signed=bundled(signed) if signed else None,
    )


def checks_of(data: Mapping[str, Any], expected_key: str | None) -> list[evidence.Check]:
    """What someone else would find."""
    return evidence.verify_evidence(data, fill=fill_again, expected_key=expected_key)


# --- the checkpoint ------------------------------------------------------------------------------------


def covering(replay: Replay, block: LedgerBlock | None) -> Signed | None:
    """The first checkpoint that the version, the move and the block lead to."""
    rows = Checkpoint.objects.in_workspace(replay.version.workspace_id).order_by("sequence")
    for since in beginnings(replay, block):
        for row in rows.filter(at__gte=since)[:CANDIDATES]:
            if signed := signed_over(row, replay, block):
                return signed
    return None


def signed_over(row: Checkpoint, replay: Replay, block: LedgerBlock | None) -> Signed | None:
    """The checkpoint, if all of it leads there; one that was spoiled counts as none."""
    try:
        heads = heads_at(row)
        return Signed(row, heads, public_key(row)) if covers(row, heads, replay, block) else None
    except (ValueError, LookupError, TypeError, SigningKey.DoesNotExist):
        return None


def beginnings(replay: Replay, block: LedgerBlock | None) -> list[datetime]:
    """From when on to look: best is a checkpoint after the moment itself, which proves that nothing moved."""
    if replay.entry:
        # What is not closed in a block yet can still be led to its version.
        return [block.at if block else replay.version.created_at]
    return [replay.at, replay.move.at if replay.move else replay.version.created_at]


def covers(row: Checkpoint, heads: Heads, replay: Replay, block: LedgerBlock | None) -> bool:
    if block and row.body["ledger"]["sequence"] < block.sequence:
        return False
    if replay.move and place_in(heads.label_moves, replay) < replay.move.sequence:
        return False
    return place_in(heads.versions, replay) >= replay.version.number


def place_in(heads: Sequence[Head], replay: Replay) -> int:
    """How far the chain of this prompt had grown."""
    line = line_of(replay.prompt)
    return next((head.number for head in heads if (head.agent, head.channel) == line), 0)


def public_key(row: Checkpoint) -> PublicKey:
    keys = SigningKey.objects.in_workspace(row.workspace_id)
    return load_public(keys.values_list("public_key", flat=True).get(key_id=row.key_id))


def bundled(signed: Signed) -> tuple[SignedCheckpoint, PublicKey]:
    row = signed.row
    return SignedCheckpoint(row.body, row.signature, row.key_id, signed.heads.data()), signed.key


# --- the links that lead there -------------------------------------------------------------------------


def versions_from(replay: Replay, signed: Signed | None) -> list[Stored[VersionRow]]:
    version, line = replay.version, line_of(replay.prompt)
    last = place_in(signed.heads.versions, replay) if signed else version.number
    rows = PromptVersion.objects.in_workspace(version.workspace_id).filter(prompt=version.prompt_id)
    rows = rows.filter(number__gte=version.number, number__lte=last).order_by("number")
    return [(version_row(row, line), row.hash, row.previous_hash) for row in rows.iterator(chunk_size=200)]


def pointer_of(replay: Replay, signed: Signed | None) -> evidence_reader.Pointer:
    return evidence_reader.Pointer(replay.label, replay.at, moves_from(replay, signed) if replay.move else [])


def moves_from(replay: Replay, signed: Signed | None) -> list[Stored[LabelMoveRow]]:
    first = replay.move.sequence if replay.move else 0
    last = place_in(signed.heads.label_moves, replay) if signed else first
    rows = LabelMove.objects.in_workspace(replay.version.workspace_id).filter(prompt=replay.version.prompt_id)
    rows = rows.filter(sequence__gte=first, sequence__lte=last).order_by("sequence")
    rows = rows.select_related("version", "previous_version", "prompt")
    return [(move_row(row), row.hash, row.previous_hash) for row in rows]


def block_of(entry: LedgerEntry) -> LedgerBlock | None:
    rows = LedgerBlock.objects.in_workspace(entry.workspace_id)
    block = rows.filter(last_id__gte=entry.pk).order_by("last_id").first()
    return block if block and block.first_id <= entry.pk else None


def pairs_in(block: LedgerBlock) -> list[tuple[int, str]]:
    rows = LedgerEntry.objects.in_workspace(block.workspace_id)
    rows = rows.filter(at__gte=block.first_at, at__lte=block.last_at)
    rows = rows.filter(pk__gte=block.first_id, pk__lte=block.last_id).order_by("pk")
    return list(rows.values_list("pk", "seal"))


def blocks_from(block: LedgerBlock, signed: Signed | None) -> list[Stored[LedgerBlockRow]]:
    last = signed.row.body["ledger"]["sequence"] if signed else block.sequence
    rows = LedgerBlock.objects.in_workspace(block.workspace_id)
    rows = rows.filter(sequence__gte=block.sequence, sequence__lte=last).order_by("sequence")
    return [(block_row(row), row.hash, row.previous_hash) for row in rows]


# --- words ---------------------------------------------------------------------------------------------


def segments_of(version: PromptVersion) -> list[evidence_reader.Segment]:
    """Each stored segment with its words; None for what was erased."""
    found = contents_of(version.workspace_id, digests_in(version.segments))
    contents = {digest: None if data is None else data.decode() for digest, data in found.items()}
    return [
        evidence_reader.Segment(
            row,
            row["text"] if "text" in row else contents[row["content"]],
            contents[row["given"]] if "given" in row else None,
        )
        for row in version.segments
    ]

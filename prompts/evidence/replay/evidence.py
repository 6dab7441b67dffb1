"""Build the evidence bundle for a replay. Third parties verify the bundle without this database."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from prompts.assembly.call_inputs import changes_inputs
from prompts.evidence.integrity.checkpoint_signer import get_heads_at
from prompts.evidence.replay.rebuild_text import rebuild_evidence_text
from prompts.evidence.replay.services import Replay
from prompts.models import Checkpoint, LabelMove, LedgerBlock, LedgerEntry, PromptVersion, SigningKey
from prompts.proof import evidence, evidence_reader
from prompts.proof.call_values import MissingCallValue
from prompts.proof.chain_heads import ChainHead, ChainHeads
from prompts.proof.checkpoints import SignedCheckpoint
from prompts.proof.hashed_rows import LabelMoveRow, LedgerBlockRow, StoredRow, VersionRow
from prompts.proof.signing_keys import PublicKey, load_public_key
from prompts.proof_rows import (
    build_block_row,
    build_label_move_row,
    build_ledger_row,
    build_version_row,
    get_prompt_key,
)
from prompts.publishing.versions.segments import list_content_digests
from prompts.publishing.versions.selectors import (
    get_content_salts,
    get_lockfile_parts,
    get_version_contents,
    list_tombstoned_digests,
)
from prompts.publishing.versions.stored_inputs import InputsUnavailable, load_input_contents
from prompts.serving.call_contents.selectors import get_call_contents, get_call_salts, get_call_values
from prompts.serving.slot_values import slots_from_json

# Number of checkpoints to try, oldest first. The first checkpoint after a build may not cover the build: it
# may have been signed before the transaction of the build was committed.
MAX_CANDIDATES = 10


class CoveringCheckpoint(NamedTuple):
    """The checkpoint that covers a replay, with its chain heads and public key."""

    row: Checkpoint
    heads: ChainHeads
    key: PublicKey


def build_evidence(replay: Replay) -> dict[str, Any]:
    """Build the evidence bundle as JSON-ready data.

    The bundle has no checkpoint until one covers the replay, and no text that was erased.
    """
    entry, block = replay.entry, find_entry_block(replay.entry) if replay.entry else None
    signed = find_covering_checkpoint(replay, block)
    text = replay.text if entry and replay.is_exact else None
    inputs = get_stored_inputs(replay)
    return evidence.build_evidence_bundle(
        text=text,
        served=entry.served_digest if entry else None,
        slots=entry.slots if entry else None,
        slot_contents=get_slot_contents(entry) if entry else None,
        versions=list_version_rows(replay, signed),
        segments=list_evidence_segments(replay.version),
        tools=get_stored_definitions(replay.version),
        inputs=inputs,
        salts=list_salts(replay, inputs),
        lockfile=replay.version.lockfile,
        parts=get_lockfile_parts(replay.version),
        pointer=None if entry else build_evidence_pointer(replay, signed),
        ledger=(build_ledger_row(entry), entry.seal) if entry else None,
        block_rows=list_block_seals(block) if block else (),
        blocks=list_block_rows(block, signed) if block else (),
        signed=build_signed_checkpoint(signed) if signed else None,
    )


def run_evidence_checks(data: Mapping[str, Any], expected_key: str | None) -> list[evidence.CheckResult]:
    """Verify a bundle exactly as a third party would."""
    return evidence.verify_evidence(data, fill=rebuild_evidence_text, expected_key=expected_key)


# --- the checkpoint ------------------------------------------------------------------------------------


def find_covering_checkpoint(replay: Replay, block: LedgerBlock | None) -> CoveringCheckpoint | None:
    """Return the first checkpoint that covers the version, the label move and the ledger block."""
    rows = Checkpoint.objects.in_workspace(replay.version.workspace_id).order_by("sequence")
    for since in list_search_starts(replay, block):
        for row in rows.filter(at__gte=since)[:MAX_CANDIDATES]:
            if signed := load_covering_checkpoint(row, replay, block):
                return signed
    return None


def load_covering_checkpoint(
    row: Checkpoint, replay: Replay, block: LedgerBlock | None
) -> CoveringCheckpoint | None:
    """Return the checkpoint with its heads and key; None if it does not cover the replay or is damaged."""
    try:
        heads = get_heads_at(row)
        return (
            CoveringCheckpoint(row, heads, load_checkpoint_key(row))
            if is_replay_covered(row, heads, replay, block)
            else None
        )
    except (ValueError, LookupError, TypeError, SigningKey.DoesNotExist):
        return None


def list_search_starts(replay: Replay, block: LedgerBlock | None) -> list[datetime]:
    """Return the times from which to search for a covering checkpoint, best first.

    For a replay by time, a checkpoint signed after the replayed time is best: it also proves that the label
    had not moved again by the replayed time. Any checkpoint after the label move proves only the move.
    """
    if replay.entry:
        # Until the ledger row is in a block, a checkpoint can prove only its version.
        return [block.at if block else replay.version.created_at]
    return [replay.at, replay.move.at if replay.move else replay.version.created_at]


def is_replay_covered(row: Checkpoint, heads: ChainHeads, replay: Replay, block: LedgerBlock | None) -> bool:
    if block and row.body["ledger"]["sequence"] < block.sequence:
        return False
    if replay.move and find_head_number(heads.label_moves, replay) < replay.move.sequence:
        return False
    return find_head_number(heads.versions, replay) >= replay.version.number


def find_head_number(heads: Sequence[ChainHead], replay: Replay) -> int:
    """Return the last number of this prompt's chain according to the chain heads; 0 if it has no head."""
    prompt_key = get_prompt_key(replay.prompt)
    return next((head.number for head in heads if (head.agent, head.channel) == prompt_key), 0)


def load_checkpoint_key(row: Checkpoint) -> PublicKey:
    keys = SigningKey.objects.in_workspace(row.workspace_id)
    return load_public_key(keys.values_list("public_key", flat=True).get(key_id=row.key_id))


def build_signed_checkpoint(signed: CoveringCheckpoint) -> tuple[SignedCheckpoint, PublicKey]:
    row = signed.row
    return SignedCheckpoint(row.body, row.signature, row.key_id, signed.heads.to_json()), signed.key


# --- chain rows up to the checkpoint -------------------------------------------------------------------


def list_version_rows(replay: Replay, signed: CoveringCheckpoint | None) -> list[StoredRow[VersionRow]]:
    version, prompt_key = replay.version, get_prompt_key(replay.prompt)
    last = find_head_number(signed.heads.versions, replay) if signed else version.number
    rows = PromptVersion.objects.in_workspace(version.workspace_id).filter(prompt=version.prompt_id)
    rows = rows.filter(number__gte=version.number, number__lte=last).order_by("number")
    return [
        (build_version_row(row, prompt_key), row.hash, row.previous_hash)
        for row in rows.iterator(chunk_size=200)
    ]


def build_evidence_pointer(replay: Replay, signed: CoveringCheckpoint | None) -> evidence_reader.LabelPointer:
    return evidence_reader.LabelPointer(
        replay.label, replay.at, list_move_rows(replay, signed) if replay.move else []
    )


def list_move_rows(replay: Replay, signed: CoveringCheckpoint | None) -> list[StoredRow[LabelMoveRow]]:
    first = replay.move.sequence if replay.move else 0
    last = find_head_number(signed.heads.label_moves, replay) if signed else first
    rows = LabelMove.objects.in_workspace(replay.version.workspace_id).filter(prompt=replay.version.prompt_id)
    rows = rows.filter(sequence__gte=first, sequence__lte=last).order_by("sequence")
    rows = rows.select_related("version", "previous_version", "prompt")
    return [(build_label_move_row(row), row.hash, row.previous_hash) for row in rows]


def find_entry_block(entry: LedgerEntry) -> LedgerBlock | None:
    rows = LedgerBlock.objects.in_workspace(entry.workspace_id)
    block = rows.filter(last_id__gte=entry.pk).order_by("last_id").first()
    return block if block and block.first_id <= entry.pk else None


def list_block_seals(block: LedgerBlock) -> list[tuple[int, str]]:
    rows = LedgerEntry.objects.in_workspace(block.workspace_id)
    rows = rows.filter(at__gte=block.first_at, at__lte=block.last_at)
    rows = rows.filter(pk__gte=block.first_id, pk__lte=block.last_id).order_by("pk")
    return list(rows.values_list("pk", "seal"))


def list_block_rows(block: LedgerBlock, signed: CoveringCheckpoint | None) -> list[StoredRow[LedgerBlockRow]]:
    last = signed.row.body["ledger"]["sequence"] if signed else block.sequence
    rows = LedgerBlock.objects.in_workspace(block.workspace_id)
    rows = rows.filter(sequence__gte=block.sequence, sequence__lte=last).order_by("sequence")
    return [(build_block_row(row), row.hash, row.previous_hash) for row in rows]


# --- text ----------------------------------------------------------------------------------------------


def get_stored_definitions(version: PromptVersion) -> str | None:
    """Return the tool definitions exactly as stored; None if the version has none or they were erased."""
    if not version.tools:
        return None
    data = get_version_contents(version, [version.tools]).get(version.tools)
    return None if data is None else data.decode()


def list_salts(replay: Replay, inputs: Mapping[str, str] | None) -> dict[str, str]:
    """Return the salts of all texts in the bundle by digest. Erased texts have none."""
    version = replay.version
    digests = {*list_content_digests(version.segments, version.tools), *(inputs or ())}
    if replay.entry and replay.entry.skill is not None:
        digests.add(replay.entry.served_digest)
    [hidden] = list_tombstoned_digests(version.workspace_id, [version.segments])
    calls = [replay.entry.slots] if replay.entry else []
    salts = get_content_salts(version.workspace_id, digests - hidden)
    return salts | get_call_salts(version.workspace_id, *calls)


def get_slot_contents(entry: LedgerEntry) -> dict[str, str] | None:
    """Return the values of the call by digest, without erased ones; None if the call has none."""
    contents = get_call_contents(entry.workspace_id, entry.slots)
    return {digest: data.decode() for digest, data in contents.items() if data is not None} or None


def get_stored_inputs(replay: Replay) -> dict[str, str] | None:
    """Return the inputs of the version by digest, if the call changed them and none was erased."""
    if replay.entry is None:
        return None
    try:
        if not changes_inputs(slots_from_json(get_call_values(replay.entry))):
            return None
        contents = load_input_contents(replay.version)
    except (InputsUnavailable, MissingCallValue):
        return None
    return {digest: data.decode() for digest, data in contents.items()}


def list_evidence_segments(version: PromptVersion) -> list[evidence_reader.EvidenceSegment]:
    """Return the segments of a version with their texts; an erased text is None."""
    stored = get_version_contents(version, list_content_digests(version.segments))
    contents = {digest: None if data is None else data.decode() for digest, data in stored.items()}
    return [
        evidence_reader.EvidenceSegment(
            row,
            row["text"] if "text" in row else contents[row["content"]],
            contents[row["given"]] if "given" in row else None,
        )
        for row in version.segments
    ]

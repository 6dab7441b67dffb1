"""Holds checkpoints against what stands now, against each other, and against their second copy."""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prompts.proof.chain_heads import ChainHeads, read_heads
from prompts.proof.checkpoints import CheckpointStatement, SignedCheckpoint, read_checkpoint, verify_signature
from prompts.proof.faults import Fault, FaultSummary, summarize_faults
from prompts.proof.hashed_rows import (
    LabelMoveRow,
    LedgerBlockRow,
    RollOffRow,
    VersionRow,
    format_move_name,
    format_version_name,
)
from prompts.proof.signing_keys import PublicKey

CHECKPOINT_TABLE = "checkpoint"
# Agent, channel and place.
ChainPosition = tuple[int, int | None, int]


@dataclass(frozen=True)
class StoredHashes:
    """Stored hashes of one workspace, at least at the places that a checkpoint names.

    Versions and label moves by agent, channel and place, ledger blocks and roll-offs by sequence.
    """

    versions: Mapping[ChainPosition, str] = field(default_factory=dict)
    label_moves: Mapping[ChainPosition, str] = field(default_factory=dict)
    blocks: Mapping[int, str] = field(default_factory=dict)
    roll_offs: Mapping[int, str] = field(default_factory=dict)


def compare_checkpoint(
    checkpoint: CheckpointStatement, heads: ChainHeads, present: StoredHashes
) -> list[Fault]:
    """What the checkpoint saw and is no longer so: a cut tail, a shorter chain, a rewritten one.

    A chain can be recomputed from its first row on; it then verifies, but no longer reaches these hashes.
    Heads that an earlier checkpoint brought need not be looked at again.
    """
    when = checkpoint.body()["at"]
    return [
        Fault(table, name, describe_hash_change(there, when))
        for table, name, hashed, there in iterate_checkpoint_rows(checkpoint, heads, present)
        if there != hashed
    ]


def iterate_checkpoint_rows(
    checkpoint: CheckpointStatement, heads: ChainHeads, present: StoredHashes
) -> Iterator[tuple[str, str, str, str | None]]:
    """Each row the checkpoint names: its table, its name, the hash it had, the hash it has."""
    for head in heads.versions:
        yield VersionRow.table, format_version_name(*head[:3]), head.hash, present.versions.get(head[:3])
    for head in heads.label_moves:
        yield LabelMoveRow.table, format_move_name(*head[:3]), head.hash, present.label_moves.get(head[:3])
    block, gone = checkpoint.ledger, checkpoint.roll_offs
    if block.sequence:
        name, there = f"ledger block {block.sequence}", present.blocks.get(block.sequence)
        yield LedgerBlockRow.table, name, block.hash, there
    if gone.sequence:
        name, there = f"roll-off of ledger block {gone.sequence}", present.roll_offs.get(gone.sequence)
        yield RollOffRow.table, name, gone.hash, there


def describe_hash_change(there: str | None, when: str) -> str:
    if there is None:
        return f"it was there when the checkpoint of {when} was signed, and is gone"
    return f"it was rewritten after the checkpoint of {when} was signed: its hash is another"


def verify_checkpoints(signed: Iterable[SignedCheckpoint], keys: Mapping[str, PublicKey]) -> FaultSummary:
    """Checkpoints in the order they were made, of one workspace or of many, with the known keys by id."""
    return summarize_faults(iterate_checkpoint_faults(signed, keys))


def iterate_checkpoint_faults(
    signed: Iterable[SignedCheckpoint], keys: Mapping[str, PublicKey]
) -> Iterator[Fault | None]:
    """For every checkpoint its fault or None."""
    newest: dict[int, str] = {}
    # None after a gap, until the next whole list: what stands beyond it is not to blame.
    grown: dict[int, ChainHeads | None] = {}
    for each in signed:
        try:
            checkpoint, heads = read_checkpoint(each.body), read_heads(each.heads)
        except ValueError as error:
            yield Fault(CHECKPOINT_TABLE, get_checkpoint_name(each), f"it cannot be read: {error}")
            continue
        before = grown.get(checkpoint.workspace, ChainHeads())
        whole = heads.after(before or ChainHeads()) if before or heads.is_whole else None
        fits = whole is not None and checkpoint.sums_up(whole)
        reason = find_signature_fault(each, keys)
        if not reason and checkpoint.previous != newest.get(checkpoint.workspace, ""):
            reason = "it does not follow the checkpoint before it: some are missing, were added or moved"
        if not reason and whole is not None and not fits:
            reason = "its heads, with those before it, are not the ones that were signed"
        newest[checkpoint.workspace], grown[checkpoint.workspace] = each.hash, whole if fits else None
        yield Fault(CHECKPOINT_TABLE, get_checkpoint_name(each), reason) if reason else None


def find_signature_fault(signed: SignedCheckpoint, keys: Mapping[str, PublicKey]) -> str:
    """Why a signature does not count; empty when it does."""
    key = keys.get(signed.key)
    if key is None:
        return f"it is signed with a key that is not known: {signed.key}"
    return "" if verify_signature(signed, key) else "its signature does not match it"


def find_missing_checkpoints(
    stored: Mapping[str, str], copy: Mapping[str, str], fresh: Container[str] = ()
) -> list[Fault]:
    """Checkpoints that only one of database and file has, those lost from the database first.

    Both by hash, with their names. Fresh are the hashes of those just signed, whose copy may be on its way.
    """
    lost = [name for hashed, name in copy.items() if hashed not in stored]
    strange = [name for hashed, name in stored.items() if hashed not in copy and hashed not in fresh]
    gone, unknown = "it is in the file and not in the database", "it is in the database and not in the file"
    return [Fault(CHECKPOINT_TABLE, name, gone) for name in lost] + [
        Fault(CHECKPOINT_TABLE, name, unknown) for name in strange
    ]


def get_checkpoint_names(signed: Iterable[SignedCheckpoint]) -> dict[str, str]:
    return {get_checkpoint_hash(each): get_checkpoint_name(each) for each in signed}


def get_checkpoint_hash(signed: SignedCheckpoint) -> str:
    """The hash, or nothing for a body that can have none and so equals no other."""
    try:
        return signed.hash
    except ValueError:
        return ""


def get_checkpoint_name(signed: SignedCheckpoint) -> str:
    """What a person calls a checkpoint, whatever is in its body."""
    body: object = signed.body
    said = body if isinstance(body, Mapping) else {}
    when, workspace = (str(said.get(key, "?"))[:40] for key in ("at", "workspace"))
    return f"checkpoint of workspace {workspace} at {when}"

"""Compare checkpoints with the stored rows, with each other, and with the copy in the checkpoint file."""

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
    """Stored hashes of one workspace, at least for the rows that a checkpoint names.

    Versions and label moves are keyed by agent, channel and place, ledger blocks and roll-offs by sequence.
    """

    versions: Mapping[ChainPosition, str] = field(default_factory=dict)
    label_moves: Mapping[ChainPosition, str] = field(default_factory=dict)
    blocks: Mapping[int, str] = field(default_factory=dict)
    roll_offs: Mapping[int, str] = field(default_factory=dict)


def compare_checkpoint(
    checkpoint: CheckpointStatement, heads: ChainHeads, present: StoredHashes
) -> list[Fault]:
    """List the rows named by the checkpoint that are missing or have another hash now.

    This detects truncated chains, and chains that were recomputed from the start: these verify by themselves
    but no longer contain the signed hashes. Heads of earlier checkpoints need not be compared again.
    """
    signed_at = checkpoint.body()["at"]
    return [
        Fault(table, name, describe_hash_change(stored_hash, signed_at))
        for table, name, signed_hash, stored_hash in iterate_checkpoint_rows(checkpoint, heads, present)
        if stored_hash != signed_hash
    ]


def iterate_checkpoint_rows(
    checkpoint: CheckpointStatement, heads: ChainHeads, present: StoredHashes
) -> Iterator[tuple[str, str, str, str | None]]:
    """Yield each row that the checkpoint names: its table, name, signed hash and stored hash."""
    for head in heads.versions:
        yield VersionRow.table, format_version_name(*head[:3]), head.hash, present.versions.get(head[:3])
    for head in heads.label_moves:
        yield LabelMoveRow.table, format_move_name(*head[:3]), head.hash, present.label_moves.get(head[:3])
    block, roll_off = checkpoint.ledger, checkpoint.roll_offs
    if block.sequence:
        name, stored_hash = f"ledger block {block.sequence}", present.blocks.get(block.sequence)
        yield LedgerBlockRow.table, name, block.hash, stored_hash
    if roll_off.sequence:
        name, stored_hash = (
            f"roll-off of ledger block {roll_off.sequence}",
            present.roll_offs.get(roll_off.sequence),
        )
        yield RollOffRow.table, name, roll_off.hash, stored_hash


def describe_hash_change(stored_hash: str | None, signed_at: str) -> str:
    if stored_hash is None:
        return f"it was there when the checkpoint of {signed_at} was signed, and is gone"
    return f"it was rewritten after the checkpoint of {signed_at} was signed: its hash is another"


def verify_checkpoints(signed: Iterable[SignedCheckpoint], keys: Mapping[str, PublicKey]) -> FaultSummary:
    """Verify checkpoints of one or many workspaces in order of creation; `keys` are the known keys by id."""
    return summarize_faults(iterate_checkpoint_faults(signed, keys))


def iterate_checkpoint_faults(
    signed: Iterable[SignedCheckpoint], keys: Mapping[str, PublicKey]
) -> Iterator[Fault | None]:
    """Yield the fault of every checkpoint, or None."""
    newest_hashes: dict[int, str] = {}
    # None after a gap until the next complete list, so that later checkpoints are not blamed for the gap.
    heads_by_workspace: dict[int, ChainHeads | None] = {}
    for item in signed:
        try:
            checkpoint, heads = read_checkpoint(item.body), read_heads(item.heads)
        except ValueError as error:
            yield Fault(CHECKPOINT_TABLE, get_checkpoint_name(item), f"it cannot be read: {error}")
            continue
        previous_heads = heads_by_workspace.get(checkpoint.workspace, ChainHeads())
        all_heads = (
            heads.complete_from(previous_heads or ChainHeads()) if previous_heads or heads.is_whole else None
        )
        fits = all_heads is not None and checkpoint.matches_heads(all_heads)
        reason = find_signature_fault(item, keys)
        if not reason and checkpoint.previous != newest_hashes.get(checkpoint.workspace, ""):
            reason = "it does not follow the checkpoint before it: some are missing, were added or moved"
        if not reason and all_heads is not None and not fits:
            reason = "its heads, with those before it, are not the ones that were signed"
        newest_hashes[checkpoint.workspace], heads_by_workspace[checkpoint.workspace] = (
            item.hash,
            all_heads if fits else None,
        )
        yield Fault(CHECKPOINT_TABLE, get_checkpoint_name(item), reason) if reason else None


def find_signature_fault(signed: SignedCheckpoint, keys: Mapping[str, PublicKey]) -> str:
    """Describe why a signature is invalid; empty when it is valid."""
    key = keys.get(signed.key)
    if key is None:
        return f"it is signed with a key that is not known: {signed.key}"
    return "" if verify_signature(signed, key) else "its signature does not match it"


def find_missing_checkpoints(
    stored: Mapping[str, str], copy: Mapping[str, str], fresh: Container[str] = ()
) -> list[Fault]:
    """List checkpoints that only the file or only the database has, those missing from the database first.

    `stored` and `copy` map hashes to names. `fresh` are hashes of checkpoints that were just signed and may
    not be copied yet.
    """
    not_stored = [name for hash_, name in copy.items() if hash_ not in stored]
    not_copied = [name for hash_, name in stored.items() if hash_ not in copy and hash_ not in fresh]
    not_stored_reason, not_copied_reason = (
        "it is in the file and not in the database",
        "it is in the database and not in the file",
    )
    return [Fault(CHECKPOINT_TABLE, name, not_stored_reason) for name in not_stored] + [
        Fault(CHECKPOINT_TABLE, name, not_copied_reason) for name in not_copied
    ]


def get_checkpoint_names(signed: Iterable[SignedCheckpoint]) -> dict[str, str]:
    return {get_checkpoint_hash(checkpoint): get_checkpoint_name(checkpoint) for checkpoint in signed}


def get_checkpoint_hash(signed: SignedCheckpoint) -> str:
    """Return the hash, or an empty text for a body without a canonical form."""
    try:
        return signed.hash
    except ValueError:
        return ""


def get_checkpoint_name(signed: SignedCheckpoint) -> str:
    """Format a display name; works for any body, also an invalid one."""
    body: object = signed.body
    fields = body if isinstance(body, Mapping) else {}
    signed_at, workspace = (str(fields.get(key, "?"))[:40] for key in ("at", "workspace"))
    return f"checkpoint of workspace {workspace} at {signed_at}"

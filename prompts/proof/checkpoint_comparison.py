"""Compare checkpoints with the stored rows, with each other, and with the copy in the checkpoint file."""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prompts.proof.chain_heads import ChainHeads, read_heads
from prompts.proof.checkpoints import CheckpointStatement, SignedCheckpoint, read_checkpoint, verify_signature
from prompts.proof.faults import Fault, FaultSummary, summarize_faults
from prompts.proof.hashed_rows import (
    ExpiryRow,
    LabelMoveRow,
    LedgerBlockRow,
    VersionRow,
    format_move_name,
    format_version_name,
)
from prompts.proof.signing_keys import PublicKey

CHECKPOINT_TABLE = "checkpoint"
# Agent id, channel id, and place of the row in the chain.
ChainPosition = tuple[int, int | None, int]


@dataclass(frozen=True)
class StoredHashes:
    """Hashes that are stored in the database for rows of one workspace.

    All rows that the compared checkpoints name must be included if they exist.

    Versions and label moves are keyed by agent, channel and place, ledger blocks and expiries by sequence.
    """

    versions: Mapping[ChainPosition, str] = field(default_factory=dict)
    label_moves: Mapping[ChainPosition, str] = field(default_factory=dict)
    blocks: Mapping[int, str] = field(default_factory=dict)
    expiries: Mapping[int, str] = field(default_factory=dict)


def compare_checkpoint(
    checkpoint: CheckpointStatement, heads: ChainHeads, present: StoredHashes
) -> list[Fault]:
    """List the rows named by the checkpoint that are missing or have another hash now.

    This detects chains whose end was deleted and chains whose hashes were all recomputed. Such chains are
    consistent in themselves but no longer contain the signed hashes. `heads` are the heads stored with this
    checkpoint; heads that did not change are compared with an earlier checkpoint.
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
    block, expiry = checkpoint.ledger, checkpoint.expiries
    if block.sequence:
        name, stored_hash = f"ledger block {block.sequence}", present.blocks.get(block.sequence)
        yield LedgerBlockRow.table, name, block.hash, stored_hash
    if expiry.sequence:
        name, stored_hash = (
            f"expiry of ledger block {expiry.sequence}",
            present.expiries.get(expiry.sequence),
        )
        yield ExpiryRow.table, name, expiry.hash, stored_hash


def describe_hash_change(stored_hash: str | None, signed_at: str) -> str:
    if stored_hash is None:
        return f"it existed when the checkpoint of {signed_at} was signed, but is missing now"
    return f"it was rewritten after the checkpoint of {signed_at} was signed: its hash is different"


def verify_checkpoints(signed: Iterable[SignedCheckpoint], keys: Mapping[str, PublicKey]) -> FaultSummary:
    """Verify the checkpoints of one or many workspaces, in order of creation. `keys` maps key ids to keys."""
    return summarize_faults(iterate_checkpoint_faults(signed, keys))


def iterate_checkpoint_faults(
    signed: Iterable[SignedCheckpoint], keys: Mapping[str, PublicKey]
) -> Iterator[Fault | None]:
    """Yield one item for every checkpoint: its fault, or None if it is sound."""
    newest_hashes: dict[int, str] = {}
    # The complete heads at the last checkpoint of each workspace. None if they are unknown because the heads
    # of a checkpoint did not match. Later checkpoints are then not reported for their heads, until one of
    # them has complete heads again.
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
            reason = (
                "it does not follow the previous checkpoint: checkpoints are missing, were "
                "added or were moved"
            )
        if not reason and all_heads is not None and not fits:
            reason = "its heads, combined with earlier ones, do not match the signed heads"
        newest_hashes[checkpoint.workspace], heads_by_workspace[checkpoint.workspace] = (
            item.hash,
            all_heads if fits else None,
        )
        yield Fault(CHECKPOINT_TABLE, get_checkpoint_name(item), reason) if reason else None


def find_signature_fault(signed: SignedCheckpoint, keys: Mapping[str, PublicKey]) -> str:
    """Return why the signature is invalid, or an empty text if it is valid."""
    key = keys.get(signed.key)
    if key is None:
        return f"it is signed with an unknown key: {signed.key}"
    return "" if verify_signature(signed, key) else "its signature is not valid"


def find_missing_checkpoints(
    stored: Mapping[str, str], copy: Mapping[str, str], fresh: Container[str] = ()
) -> list[Fault]:
    """List checkpoints that are missing from the database, then those missing from the checkpoint file.

    `stored` (the database) and `copy` (the file) map the hashes of checkpoints to display names. `fresh` are
    hashes of checkpoints that were just signed and may not be in the file yet.
    """
    not_stored = [name for hash_, name in copy.items() if hash_ not in stored]
    not_copied = [name for hash_, name in stored.items() if hash_ not in copy and hash_ not in fresh]
    not_stored_reason, not_copied_reason = (
        "it is in the file but not in the database",
        "it is in the database but not in the file",
    )
    return [Fault(CHECKPOINT_TABLE, name, not_stored_reason) for name in not_stored] + [
        Fault(CHECKPOINT_TABLE, name, not_copied_reason) for name in not_copied
    ]


def get_checkpoint_names(signed: Iterable[SignedCheckpoint]) -> dict[str, str]:
    return {get_checkpoint_hash(checkpoint): get_checkpoint_name(checkpoint) for checkpoint in signed}


def get_checkpoint_hash(signed: SignedCheckpoint) -> str:
    """Return the hash of a checkpoint, or an empty text if its body cannot be hashed."""
    try:
        return signed.hash
    except ValueError:
        return ""


def get_checkpoint_name(signed: SignedCheckpoint) -> str:
    """Format the display name of a checkpoint, whose body may be invalid."""
    body: object = signed.body
    fields = body if isinstance(body, Mapping) else {}
    signed_at, workspace = (str(fields.get(key, "?"))[:40] for key in ("at", "workspace"))
    return f"checkpoint of workspace {workspace} at {signed_at}"

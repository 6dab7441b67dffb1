"""Holds checkpoints against what stands now, against each other, and against their second copy."""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prompts.proof.chain_heads import Heads, read_heads
from prompts.proof.checkpoints import Checkpoint, SignedCheckpoint, read_checkpoint, verify_signature
from prompts.proof.faults import Fault, Verdict, verdict
from prompts.proof.hashed_rows import (
    LabelMoveRow,
    LedgerBlockRow,
    RollOffRow,
    VersionRow,
    move_name,
    version_name,
)
from prompts.proof.signing_keys import PublicKey

TABLE = "checkpoint"
# Agent, channel and place.
Place = tuple[int, int | None, int]


@dataclass(frozen=True)
class Present:
    """Stored hashes of one workspace, at least at the places that a checkpoint names.

    Versions and label moves by agent, channel and place, ledger blocks and roll-offs by sequence.
    """

    versions: Mapping[Place, str] = field(default_factory=dict)
    label_moves: Mapping[Place, str] = field(default_factory=dict)
    blocks: Mapping[int, str] = field(default_factory=dict)
    roll_offs: Mapping[int, str] = field(default_factory=dict)


def compare(checkpoint: Checkpoint, heads: Heads, present: Present) -> list[Fault]:
    """What the checkpoint saw and is no longer so: a cut tail, a shorter chain, a rewritten one.

    A chain can be recomputed from its first row on; it then verifies, but no longer reaches these hashes.
    Heads that an earlier checkpoint brought need not be looked at again.
    """
    when = checkpoint.body()["at"]
    return [
        Fault(table, name, changed(there, when))
        for table, name, hashed, there in stated(checkpoint, heads, present)
        if there != hashed
    ]


def stated(
    checkpoint: Checkpoint, heads: Heads, present: Present
) -> Iterator[tuple[str, str, str, str | None]]:
    """Each row the checkpoint names: its table, its name, the hash it had, the hash it has."""
    for head in heads.versions:
        yield VersionRow.table, version_name(*head[:3]), head.hash, present.versions.get(head[:3])
    for head in heads.label_moves:
        yield LabelMoveRow.table, move_name(*head[:3]), head.hash, present.label_moves.get(head[:3])
    block, gone = checkpoint.ledger, checkpoint.roll_offs
    if block.sequence:
        name, there = f"ledger block {block.sequence}", present.blocks.get(block.sequence)
        yield LedgerBlockRow.table, name, block.hash, there
    if gone.sequence:
        name, there = f"roll-off of ledger block {gone.sequence}", present.roll_offs.get(gone.sequence)
        yield RollOffRow.table, name, gone.hash, there


def changed(there: str | None, when: str) -> str:
    if there is None:
        return f"it was there when the checkpoint of {when} was signed, and is gone"
    return f"it was rewritten after the checkpoint of {when} was signed: its hash is another"


def verify_checkpoints(signed: Iterable[SignedCheckpoint], keys: Mapping[str, PublicKey]) -> Verdict:
    """Checkpoints in the order they were made, of one workspace or of many, with the known keys by id."""
    return verdict(judge_checkpoints(signed, keys))


def judge_checkpoints(
    signed: Iterable[SignedCheckpoint], keys: Mapping[str, PublicKey]
) -> Iterator[Fault | None]:
    """For every checkpoint its fault or None."""
    newest: dict[int, str] = {}
    # None after a gap, until the next whole list: what stands beyond it is not to blame.
    grown: dict[int, Heads | None] = {}
    for each in signed:
        try:
            checkpoint, heads = read_checkpoint(each.body), read_heads(each.heads)
        except ValueError as error:
            yield Fault(TABLE, name_of(each), f"it cannot be read: {error}")
            continue
        before = grown.get(checkpoint.workspace, Heads())
        whole = heads.after(before or Heads()) if before or heads.is_whole else None
        fits = whole is not None and checkpoint.sums_up(whole)
        reason = unsigned(each, keys)
        if not reason and checkpoint.previous != newest.get(checkpoint.workspace, ""):
            reason = "it does not follow the checkpoint before it: some are missing, were added or moved"
        if not reason and whole is not None and not fits:
            reason = "its heads, with those before it, are not the ones that were signed"
        newest[checkpoint.workspace], grown[checkpoint.workspace] = each.hash, whole if fits else None
        yield Fault(TABLE, name_of(each), reason) if reason else None


def unsigned(signed: SignedCheckpoint, keys: Mapping[str, PublicKey]) -> str:
    """Why a signature does not count; empty when it does."""
    key = keys.get(signed.key)
    if key is None:
        return f"it is signed with a key that is not known: {signed.key}"
    return "" if verify_signature(signed, key) else "its signature does not match it"


def missing_checkpoints(
    stored: Mapping[str, str], copy: Mapping[str, str], fresh: Container[str] = ()
) -> list[Fault]:
    """Checkpoints that only one of database and file has, those lost from the database first.

    Both by hash, with their names. Fresh are the hashes of those just signed, whose copy may be on its way.
    """
    lost = [name for hashed, name in copy.items() if hashed not in stored]
    strange = [name for hashed, name in stored.items() if hashed not in copy and hashed not in fresh]
    gone, unknown = "it is in the file and not in the database", "it is in the database and not in the file"
    return [Fault(TABLE, name, gone) for name in lost] + [Fault(TABLE, name, unknown) for name in strange]


def named(signed: Iterable[SignedCheckpoint]) -> dict[str, str]:
    return {hash_of(each): name_of(each) for each in signed}


def hash_of(signed: SignedCheckpoint) -> str:
    """The hash, or nothing for a body that can have none and so equals no other."""
    try:
        return signed.hash
    except ValueError:
        return ""


def name_of(signed: SignedCheckpoint) -> str:
    """What a person calls a checkpoint, whatever is in its body."""
    body: object = signed.body
    said = body if isinstance(body, Mapping) else {}
    when, workspace = (str(said.get(key, "?"))[:40] for key in ("at", "workspace"))
    return f"checkpoint of workspace {workspace} at {when}"

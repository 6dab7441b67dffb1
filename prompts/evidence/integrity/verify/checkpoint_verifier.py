"""Verify checkpoints: signatures, their hash chain, the rows they refer to, and the file copy."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet
from django.utils import timezone

from personas.models import Workspace
from prompts.evidence.integrity.trusted_keys import find_trust_fault, get_trusted_keys
from prompts.evidence.integrity.verify.row_stream import WorkspacePrompts, iterate_chunks, iterate_rows
from prompts.models import (
    Checkpoint,
    LabelMove,
    LedgerBlock,
    LedgerExpiry,
    PromptVersion,
    SigningKey,
)
from prompts.proof.chain_heads import ChainHead, ChainHeads, read_heads
from prompts.proof.checkpoint_comparison import (
    ChainPosition,
    StoredHashes,
    compare_checkpoint,
    find_missing_checkpoints,
    find_signature_fault,
    get_checkpoint_hash,
    get_checkpoint_name,
    get_checkpoint_names,
    iterate_checkpoint_faults,
)
from prompts.proof.checkpoints import CheckpointStatement as Statement
from prompts.proof.checkpoints import SignedCheckpoint, read_checkpoint
from prompts.proof.faults import Fault
from prompts.proof.signing_keys import PublicKey, UnusableKey, dump_public_key, get_key_id, load_public_key
from prompts.proof_rows import PromptKey, RowLike

TABLE, KEY_TABLE = "checkpoint", "signing-key"
CHECKPOINT_COLUMNS = (
    *("workspace_id", "sequence", "body", "heads", "at", "previous_hash", "hash", "key_id", "signature"),
)
KEY_COLUMNS = ("key_id", "public_key", "first_used_at")
BATCH_SIZE, MAX_PLACES_PER_QUERY = 100, 300
# A checkpoint may be missing from the file this long: the copy is written shortly after the row is committed.
COPY_GRACE_PERIOD = timedelta(minutes=5)


class ReadableCheckpoint(NamedTuple):
    """A parsed checkpoint, to be compared with the stored chains."""

    statement: Statement
    heads: ChainHeads


class CheckpointVerifier:
    """Verify the signing keys and checkpoints of a workspace in one pass.

    Call `verify_keys` first: the checkpoints are checked with the keys it loads.
    """

    def __init__(self, workspace: Workspace, prompts: WorkspacePrompts) -> None:
        self.workspace, self.prompts = workspace, prompts
        self.prompt_ids = {prompt.key: prompt.id for prompt in prompts.by_id.values()}
        self.trusted = get_trusted_keys()
        self.keys: dict[str, PublicKey] = {}
        self.first_used: dict[str, Any] = {}
        self.last_row: RowLike = None
        self.sequence = 0
        self.pending: list[ReadableCheckpoint] = []

    # --- keys -------------------------------------------------------------------------------------------

    def verify_keys(self) -> Iterator[Fault | None]:
        rows = SigningKey.objects.in_workspace(self.workspace).order_by("id")
        for row in iterate_rows(rows, KEY_COLUMNS, KEY_TABLE):
            yield row if isinstance(row, Fault) else self.find_key_fault(row)

    def find_key_fault(self, row: RowLike) -> Fault | None:
        name = f"signing key {row.key_id}"
        try:
            key = load_public_key(row.public_key)
        except UnusableKey as error:
            return Fault(KEY_TABLE, name, str(error))
        if get_key_id(key) != row.key_id or dump_public_key(key) != row.public_key:
            return Fault(KEY_TABLE, name, "the key with this ID is a different key")
        if reason := find_trust_fault(self.trusted, row.key_id, key):
            return Fault(KEY_TABLE, name, reason)
        self.keys[row.key_id], self.first_used[row.key_id] = key, row.first_used_at
        return None

    def find_unused_keys(self) -> Iterator[Fault]:
        """Report keys without a checkpoint at their recorded time of first use.

        Call it after `verify_checkpoints`, which removes from `first_used` the keys with such a checkpoint.
        """
        for key in self.first_used:
            yield Fault(
                KEY_TABLE, f"signing key {key}", "no checkpoint was signed with it at the recorded time"
            )

    # --- rows -------------------------------------------------------------------------------------------

    def verify_checkpoints(self) -> Iterator[Fault | None]:
        """Verify each checkpoint and its link to the previous one.

        After each batch, compare the signed hashes of the checkpoints with the stored chains.
        """
        rows = Checkpoint.objects.in_workspace(self.workspace).order_by("sequence")
        stored = iterate_rows(rows, CHECKPOINT_COLUMNS, TABLE)
        for results in iterate_chunks(self.verify_rows(stored), BATCH_SIZE):
            yield from results
            yield from self.compare_pending()

    def verify_rows(self, rows: Iterable[RowLike | Fault]) -> Iterator[Fault | None]:
        unreadable: list[Fault] = []
        for fault in iterate_checkpoint_faults(self.iterate_signed(rows, unreadable), self.keys):
            yield from unreadable
            unreadable.clear()
            column_fault = self.find_column_fault()
            yield fault or column_fault
        yield from unreadable

    def iterate_signed(
        self, rows: Iterable[RowLike | Fault], unreadable: list[Fault]
    ) -> Iterator[SignedCheckpoint]:
        for row in rows:
            if isinstance(row, Fault):
                unreadable.append(row)
                continue
            self.last_row = row
            yield SignedCheckpoint(row.body, row.signature, row.key_id, row.heads)

    def find_column_fault(self) -> Fault | None:
        """Check that the columns of `last_row`, the checkpoint read last, match its signed body."""
        row = self.last_row
        try:
            statement, heads = read_checkpoint(row.body), read_heads(row.heads)
        except ValueError:
            # iterate_checkpoint_faults has already reported that the checkpoint is unreadable.
            return None
        self.sequence += 1
        self.pending.append(ReadableCheckpoint(statement, heads))
        if self.first_used.get(row.key_id) == row.at:
            del self.first_used[row.key_id]
        signed = SignedCheckpoint(row.body, row.signature, row.key_id)
        expected = (statement.workspace, statement.at, statement.previous, signed.hash, self.sequence)
        stored = (row.workspace_id, row.at, row.previous_hash, row.hash, row.sequence)
        if expected == stored and row.workspace_id == self.workspace.pk:
            return None
        return Fault(TABLE, f"checkpoint {row.sequence}", "its columns do not match the signed content")

    # --- stored chains ----------------------------------------------------------------------------------

    def compare_pending(self) -> Iterator[Fault]:
        checkpoints, self.pending = self.pending, []
        stored = self.get_stored_hashes(checkpoints)
        for statement, heads in checkpoints:
            yield from compare_checkpoint(statement, heads, stored)

    def get_stored_hashes(self, checkpoints: Sequence[ReadableCheckpoint]) -> StoredHashes:
        """Load the stored hashes of all rows that these checkpoints refer to."""
        versions = [head for checkpoint in checkpoints for head in checkpoint.heads.versions]
        moves = [head for checkpoint in checkpoints for head in checkpoint.heads.label_moves]
        version_rows = PromptVersion.objects.in_workspace(self.workspace)
        move_rows = LabelMove.objects.in_workspace(self.workspace)
        blocks = LedgerBlock.objects.in_workspace(self.workspace)
        expiries = LedgerExpiry.objects.in_workspace(self.workspace)
        block_sequences = {checkpoint.statement.ledger.sequence for checkpoint in checkpoints}
        expiry_sequences = {checkpoint.statement.expiries.sequence for checkpoint in checkpoints}
        return StoredHashes(
            versions=self.get_chain_hashes(version_rows, "number", versions),
            label_moves=self.get_chain_hashes(move_rows, "sequence", moves),
            blocks=dict(blocks.filter(sequence__in=block_sequences).values_list("sequence", "hash")),
            expiries=dict(
                expiries.filter(block__sequence__in=expiry_sequences).values_list("block__sequence", "hash")
            ),
        )

    def get_chain_hashes(
        self, rows: QuerySet[Any], number_field: str, heads: Iterable[ChainHead]
    ) -> Mapping[ChainPosition, str]:
        hashes: dict[ChainPosition, str] = {}
        prompt_keys = {prompt_id: prompt_key for prompt_key, prompt_id in self.prompt_ids.items()}
        positions = {
            (self.prompt_ids.get(PromptKey(head.agent, head.channel), 0), head.number) for head in heads
        }
        for chunk in iterate_chunks(positions, MAX_PLACES_PER_QUERY):
            condition = reduce(
                or_, (Q(prompt_id=prompt_id, **{number_field: number}) for prompt_id, number in chunk)
            )
            for prompt_id, number, stored_hash in rows.filter(condition).values_list(
                "prompt_id", number_field, "hash"
            ):
                hashes[(*prompt_keys[prompt_id], number)] = stored_hash
        return hashes

    # --- file copy --------------------------------------------------------------------------------------

    def verify_file(self, copies: Iterable[SignedCheckpoint | Fault]) -> Iterator[Fault | None]:
        """Verify the file copy line by line, then report differences between the file and the database."""
        names: dict[str, str] = {}
        unreadable: list[Fault] = []
        for fault in iterate_checkpoint_faults(filter_readable_copies(copies, names, unreadable), self.keys):
            yield from unreadable
            unreadable.clear()
            yield fault
        yield from unreadable
        yield from self.find_unmatched(names)

    # --- copy from elsewhere ----------------------------------------------------------------------------

    def verify_outside_copy(self, copies: Iterable[SignedCheckpoint | Fault]) -> Iterator[Fault | None]:
        """Verify checkpoints that were kept elsewhere: each must be signed by a trusted key and be stored.

        For one that is not stored, also report the rows that it names and that are missing or changed.
        """
        rows = Checkpoint.objects.in_workspace(self.workspace)
        stored = rows.values_list("body", "signature", "key_id").iterator(chunk_size=BATCH_SIZE)
        hashes = {get_checkpoint_hash(SignedCheckpoint(*row)) for row in stored}
        keys = self.keys | {key_id: key for key_id, key in self.trusted.items() if key is not None}
        for copy in copies:
            if isinstance(copy, Fault):
                yield copy
            elif reason := find_signature_fault(copy, keys):
                yield Fault(TABLE, get_checkpoint_name(copy), f"in the external copy, {reason}")
            elif copy.hash in hashes:
                yield None
            else:
                yield Fault(
                    TABLE,
                    get_checkpoint_name(copy),
                    "it is in the external copy but not in the database",
                )
                self.pending.append(ReadableCheckpoint(read_checkpoint(copy.body), read_heads(copy.heads)))
                yield from self.compare_pending()

    def find_unmatched(self, names: Mapping[str, str]) -> list[Fault]:
        rows = Checkpoint.objects.in_workspace(self.workspace).order_by("sequence")
        stored = rows.values_list("body", "signature", "key_id").iterator(chunk_size=BATCH_SIZE)
        recent = rows.filter(at__gt=timezone.now() - COPY_GRACE_PERIOD).values_list("hash", flat=True)
        return find_missing_checkpoints(
            get_checkpoint_names(SignedCheckpoint(*row) for row in stored), names, frozenset(recent)
        )


def filter_readable_copies(
    copies: Iterable[SignedCheckpoint | Fault], names: dict[str, str], unreadable: list[Fault]
) -> Iterator[SignedCheckpoint]:
    """Yield the readable copies; add their names to `names` by hash, and other lines to `unreadable`."""
    for copy in copies:
        if isinstance(copy, Fault):
            unreadable.append(copy)
            continue
        names[get_checkpoint_hash(copy)] = get_checkpoint_name(copy)
        yield copy

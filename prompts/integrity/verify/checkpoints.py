"""Checkpoints: signatures, their own chain, what they saw against what stands, and the copy in the file."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet
from django.utils import timezone

from personas.models import Workspace
from prompts.hashed_rows import PromptKey, RowLike
from prompts.integrity.verify.row_stream import WorkspacePrompts, iterate_chunks, iterate_rows
from prompts.models import (
    Checkpoint,
    LabelMove,
    LedgerBlock,
    LedgerRollOff,
    PromptVersion,
    SigningKey,
)
from prompts.proof.chain_heads import ChainHead, ChainHeads, read_heads
from prompts.proof.checkpoint_comparison import (
    ChainPosition,
    StoredHashes,
    compare_checkpoint,
    find_missing_checkpoints,
    get_checkpoint_hash,
    get_checkpoint_name,
    get_checkpoint_names,
    iterate_checkpoint_faults,
)
from prompts.proof.checkpoints import CheckpointStatement as Statement
from prompts.proof.checkpoints import SignedCheckpoint, read_checkpoint
from prompts.proof.faults import Fault
from prompts.proof.signing_keys import PublicKey, UnusableKey, dump_public_key, get_key_id, load_public_key

TABLE, KEY_TABLE = "checkpoint", "signing-key"
CHECKPOINT_COLUMNS = (
    *("workspace_id", "sequence", "body", "heads", "at", "previous_hash", "hash", "key_id", "signature"),
)
KEY_COLUMNS = ("key_id", "public_key", "first_used_at")
BATCH_SIZE, MAX_PLACES_PER_QUERY = 100, 300
# A copy is written just after its row.
COPY_GRACE_PERIOD = timedelta(minutes=5)


class ReadableCheckpoint(NamedTuple):
    """A checkpoint that can be read, to be held against what stands now."""

    statement: Statement
    heads: ChainHeads


class CheckpointVerifier:
    """The checkpoints of a workspace on their way past."""

    def __init__(self, workspace: Workspace, prompts: WorkspacePrompts) -> None:
        self.workspace, self.prompts = workspace, prompts
        self.ids = {prompt.line: prompt.id for prompt in prompts.by_id.values()}
        self.keys: dict[str, PublicKey] = {}
        self.first_used: dict[str, Any] = {}
        self.last: RowLike = None
        self.sequence = 0
        self.seen: list[ReadableCheckpoint] = []

    # --- keys -------------------------------------------------------------------------------------------

    def judge_keys(self) -> Iterator[Fault | None]:
        rows = SigningKey.objects.in_workspace(self.workspace).order_by("id")
        for row in iterate_rows(rows, KEY_COLUMNS, KEY_TABLE):
            yield row if isinstance(row, Fault) else self.key_fault(row)

    def key_fault(self, row: RowLike) -> Fault | None:
        name = f"signing key {row.key_id}"
        try:
            key = load_public_key(row.public_key)
        except UnusableKey as error:
            return Fault(KEY_TABLE, name, str(error))
        if get_key_id(key) != row.key_id or dump_public_key(key) != row.public_key:
            return Fault(KEY_TABLE, name, "the key under this id is another")
        self.keys[row.key_id], self.first_used[row.key_id] = key, row.first_used_at
        return None

    def idle_keys(self) -> Iterator[Fault]:
        """Each key came with a checkpoint; after the look none is left over."""
        for key in self.first_used:
            yield Fault(
                KEY_TABLE, f"signing key {key}", "no checkpoint was signed with it when it is said to be"
            )

    # --- rows -------------------------------------------------------------------------------------------

    def judge(self) -> Iterator[Fault | None]:
        """Every row by itself and after the one before it, then, batch by batch, against what stands now."""
        rows = Checkpoint.objects.in_workspace(self.workspace).order_by("sequence")
        waiting = iterate_rows(rows, CHECKPOINT_COLUMNS, TABLE)
        for judged in iterate_chunks(self.each(waiting), BATCH_SIZE):
            yield from judged
            yield from self.compare_seen()

    def each(self, rows: Iterable[RowLike | Fault]) -> Iterator[Fault | None]:
        unread: list[Fault] = []
        for fault in iterate_checkpoint_faults(self.signed(rows, unread), self.keys):
            yield from unread
            unread.clear()
            beside = self.column_fault()
            yield fault or beside
        yield from unread

    def signed(self, rows: Iterable[RowLike | Fault], unread: list[Fault]) -> Iterator[SignedCheckpoint]:
        for row in rows:
            if isinstance(row, Fault):
                unread.append(row)
                continue
            self.last = row
            yield SignedCheckpoint(row.body, row.signature, row.key_id, row.heads)

    def column_fault(self) -> Fault | None:
        """What stands beside the signed body must say the same."""
        row = self.last
        try:
            statement, heads = read_checkpoint(row.body), read_heads(row.heads)
        except ValueError:
            # The judge has said so already.
            return None
        self.sequence += 1
        self.seen.append(ReadableCheckpoint(statement, heads))
        if self.first_used.get(row.key_id) == row.at:
            del self.first_used[row.key_id]
        signed = SignedCheckpoint(row.body, row.signature, row.key_id)
        told = (statement.workspace, statement.at, statement.previous, signed.hash, self.sequence)
        there = (row.workspace_id, row.at, row.previous_hash, row.hash, row.sequence)
        if told == there and row.workspace_id == self.workspace.pk:
            return None
        return Fault(TABLE, f"checkpoint {row.sequence}", "its columns are not what was signed")

    # --- against what stands ----------------------------------------------------------------------------

    def compare_seen(self) -> Iterator[Fault]:
        seen, self.seen = self.seen, []
        present = self.present(seen)
        for statement, heads in seen:
            yield from compare_checkpoint(statement, heads, present)

    def present(self, seen: Sequence[ReadableCheckpoint]) -> StoredHashes:
        """The hashes that stand now at every place these checkpoints name."""
        versions = [head for each in seen for head in each.heads.versions]
        moves = [head for each in seen for head in each.heads.label_moves]
        rows = PromptVersion.objects.in_workspace(self.workspace)
        moved = LabelMove.objects.in_workspace(self.workspace)
        blocks = LedgerBlock.objects.in_workspace(self.workspace)
        gone = LedgerRollOff.objects.in_workspace(self.workspace)
        at_block = {each.statement.ledger.sequence for each in seen}
        at_gone = {each.statement.roll_offs.sequence for each in seen}
        return StoredHashes(
            versions=self.hashes(rows, "number", versions),
            label_moves=self.hashes(moved, "sequence", moves),
            blocks=dict(blocks.filter(sequence__in=at_block).values_list("sequence", "hash")),
            roll_offs=dict(gone.filter(block__sequence__in=at_gone).values_list("block__sequence", "hash")),
        )

    def hashes(
        self, rows: QuerySet[Any], place: str, heads: Iterable[ChainHead]
    ) -> Mapping[ChainPosition, str]:
        found: dict[ChainPosition, str] = {}
        lines = {key: line for line, key in self.ids.items()}
        wanted = {(self.ids.get(PromptKey(head.agent, head.channel), 0), head.number) for head in heads}
        for some in iterate_chunks(wanted, MAX_PLACES_PER_QUERY):
            asked = reduce(or_, (Q(prompt_id=key, **{place: number}) for key, number in some))
            for key, number, hashed in rows.filter(asked).values_list("prompt_id", place, "hash"):
                found[(*lines[key], number)] = hashed
        return found

    # --- the file ---------------------------------------------------------------------------------------

    def judge_file(self, copies: Iterable[SignedCheckpoint | Fault]) -> Iterator[Fault | None]:
        """The copy, line by line, then what only one of the two has."""
        names: dict[str, str] = {}
        unread: list[Fault] = []
        for fault in iterate_checkpoint_faults(filter_readable_copies(copies, names, unread), self.keys):
            yield from unread
            unread.clear()
            yield fault
        yield from unread
        yield from self.in_one_only(names)

    def in_one_only(self, names: Mapping[str, str]) -> list[Fault]:
        rows = Checkpoint.objects.in_workspace(self.workspace).order_by("sequence")
        stored = rows.values_list("body", "signature", "key_id").iterator(chunk_size=BATCH_SIZE)
        young = rows.filter(at__gt=timezone.now() - COPY_GRACE_PERIOD).values_list("hash", flat=True)
        return find_missing_checkpoints(
            get_checkpoint_names(SignedCheckpoint(*row) for row in stored), names, frozenset(young)
        )


def filter_readable_copies(
    copies: Iterable[SignedCheckpoint | Fault], names: dict[str, str], unread: list[Fault]
) -> Iterator[SignedCheckpoint]:
    """Those that can be read, on their way to the judge."""
    for each in copies:
        if isinstance(each, Fault):
            unread.append(each)
            continue
        names[get_checkpoint_hash(each)] = get_checkpoint_name(each)
        yield each

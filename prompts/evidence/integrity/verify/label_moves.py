"""Verify label moves: every hash, the recorded end of each chain, and each label's current version."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from personas.models import Workspace
from prompts.evidence.integrity.verify.row_stream import (
    CHUNK_SIZE,
    PromptChainEnds,
    VersionNumbers,
    WorkspacePrompts,
    find_orphan_rows,
    iterate_chunks,
    iterate_rows,
)
from prompts.models import LabelMove, PromptLabel
from prompts.proof.faults import Fault
from prompts.proof.hashed_rows import LabelMoveRow, StoredRow, format_chain_name, format_move_name
from prompts.proof_rows import RowLike, build_label_move_row

TABLE = LabelMoveRow.table
COLUMNS = (
    *("workspace_id", "prompt_id", "sequence", "label", "version_id", "previous_version_id", "reason"),
    *("note", "release_id", "author_label", "at", "previous_hash", "hash"),
)


class LabelMoveVerifier:
    """Verify label moves in one pass, and track the version to which each label should point."""

    def __init__(self, workspace: Workspace, prompts: WorkspacePrompts, numbers: VersionNumbers) -> None:
        self.workspace, self.prompts, self.numbers = workspace, prompts, numbers
        self.ends: dict[int, tuple[int, str]] = {}
        # Version id by prompt id and label name; a removed label has no entry.
        self.expected_labels: dict[int, dict[str, int]] = defaultdict(dict)

    def iterate_stored_moves(self) -> Iterator[StoredRow[LabelMoveRow] | Fault]:
        """Yield the moves with their stored hashes, chain by chain, in order of sequence."""
        rows = LabelMove.objects.in_workspace(self.workspace)
        for batch in self.prompts.iterate_batches("last_move"):
            batch_rows = rows.filter(prompt_id__in=batch).order_by("prompt_id", "sequence")
            for chunk in iterate_chunks(
                iterate_rows(batch_rows, COLUMNS, TABLE, timestamp_text="at"), CHUNK_SIZE
            ):
                yield from self.build_stored_moves(chunk)
        yield from find_orphan_rows(rows, self.prompts, TABLE)

    def build_stored_moves(self, chunk: list[Any]) -> Iterator[StoredRow[LabelMoveRow] | Fault]:
        moves = [row for row in chunk if not isinstance(row, Fault)]
        self.numbers.load(key for row in moves for key in (row.version_id, row.previous_version_id))
        for row in chunk:
            if isinstance(row, Fault):
                yield row
                continue
            self.track_move(row)
            versions = (row.version_id, row.previous_version_id)
            number, previous = (self.numbers.get_number(key, row.prompt_id) for key in versions)
            move_row = build_label_move_row(row, self.prompts.get_key(row.prompt_id), (number, previous))
            yield move_row, row.hash, row.previous_hash

    def track_move(self, row: RowLike) -> None:
        self.ends[row.prompt_id] = (row.sequence, row.hash)
        if row.version_id is None:
            self.expected_labels[row.prompt_id].pop(row.label, None)
        else:
            self.expected_labels[row.prompt_id][row.label] = row.version_id

    def find_end_faults(self) -> Iterator[Fault]:
        for prompt in self.prompts.by_id.values():
            sequence, last_hash = self.ends.get(prompt.id, (0, ""))
            if (sequence, last_hash) != (prompt.last_move, prompt.last_move_hash):
                name = format_move_name(*prompt.key, max(sequence, prompt.last_move))
                claim = f"the prompt states move {prompt.last_move} as its newest"
                yield Fault(TABLE, name, f"{claim}, but the chain ends with {sequence} and a different hash")

    def verify_labels(self) -> Iterator[Fault | None]:
        """Check that each label points to the version of its last move.

        Label rows are mutable, so they have no hash of their own.
        """
        stored_labels: dict[int, dict[str, int]] = defaultdict(dict)
        rows = PromptLabel.objects.in_workspace(self.workspace)
        for prompt_id, name, version in rows.values_list("prompt_id", "name", "version_id"):
            stored_labels[prompt_id][name] = version
        self.numbers.load(version for labels in stored_labels.values() for version in labels.values())
        for prompt in self.prompts.by_id.values():
            for name in sorted({*stored_labels[prompt.id], *self.expected_labels[prompt.id]}):
                stored, expected = (
                    stored_labels[prompt.id].get(name),
                    self.expected_labels[prompt.id].get(name),
                )
                yield None if stored == expected else self.build_label_fault(prompt, name, stored, expected)

    def build_label_fault(
        self, prompt: PromptChainEnds, name: str, stored: int | None, expected: int | None
    ) -> Fault:
        self.numbers.load([expected])
        stored_number, expected_number = (
            self.numbers.get_number(key, prompt.id) for key in (stored, expected)
        )
        actual_place = (
            f"it points to version {stored_number}" if stored_number is not None else "it does not exist"
        )
        expected_place = f"to version {expected_number}" if expected_number is not None else "nowhere"
        return Fault(
            "label",
            f"label {name} of {format_chain_name(*prompt.key)}",
            f"{actual_place}, but its moves lead {expected_place}",
        )

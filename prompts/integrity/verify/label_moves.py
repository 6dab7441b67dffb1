"""Label moves: every hash, every chain to the end its prompt tells, every label where its moves left it."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from personas.models import Workspace
from prompts.hashed_rows import RowLike, build_label_move_row
from prompts.integrity.verify.row_stream import (
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

TABLE = LabelMoveRow.table
COLUMNS = (
    *("workspace_id", "prompt_id", "sequence", "label", "version_id", "previous_version_id", "reason"),
    *("note", "release_id", "author_label", "at", "previous_hash", "hash"),
)


class LabelMoveVerifier:
    """The moves of a workspace on their way past, and what stands when the last one has gone by."""

    def __init__(self, workspace: Workspace, prompts: WorkspacePrompts, numbers: VersionNumbers) -> None:
        self.workspace, self.prompts, self.numbers = workspace, prompts, numbers
        self.ends: dict[int, tuple[int, str]] = {}
        # By prompt and label; gone where the label was taken off.
        self.labels: dict[int, dict[str, int]] = defaultdict(dict)

    def stored(self) -> Iterator[StoredRow[LabelMoveRow] | Fault]:
        """Chain by chain, in order of sequence."""
        rows = LabelMove.objects.in_workspace(self.workspace)
        for batch in self.prompts.batches("last_move"):
            some = rows.filter(prompt_id__in=batch).order_by("prompt_id", "sequence")
            for chunk in iterate_chunks(iterate_rows(some, COLUMNS, TABLE, spelled="at"), CHUNK_SIZE):
                yield from self.proved(chunk)
        yield from find_orphan_rows(rows, self.prompts, TABLE)

    def proved(self, chunk: list[Any]) -> Iterator[StoredRow[LabelMoveRow] | Fault]:
        moves = [row for row in chunk if not isinstance(row, Fault)]
        self.numbers.learn(key for row in moves for key in (row.version_id, row.previous_version_id))
        for row in chunk:
            if isinstance(row, Fault):
                yield row
                continue
            self.see(row)
            versions = (row.version_id, row.previous_version_id)
            number, previous = (self.numbers.of(key, row.prompt_id) for key in versions)
            made = build_label_move_row(row, self.prompts.line(row.prompt_id), (number, previous))
            yield made, row.hash, row.previous_hash

    def see(self, row: RowLike) -> None:
        self.ends[row.prompt_id] = (row.sequence, row.hash)
        if row.version_id is None:
            self.labels[row.prompt_id].pop(row.label, None)
        else:
            self.labels[row.prompt_id][row.label] = row.version_id

    def wrong_ends(self) -> Iterator[Fault]:
        for prompt in self.prompts.by_id.values():
            sequence, hashed = self.ends.get(prompt.id, (0, ""))
            if (sequence, hashed) != (prompt.last_move, prompt.last_move_hash):
                name = format_move_name(*prompt.line, max(sequence, prompt.last_move))
                said = f"the prompt's newest is said to be move {prompt.last_move}"
                yield Fault(TABLE, name, f"{said}, and the chain ends with {sequence} and another hash")

    def judge_labels(self) -> Iterator[Fault | None]:
        """Labels are rows that can be changed; only a move may have done so."""
        found: dict[int, dict[str, int]] = defaultdict(dict)
        rows = PromptLabel.objects.in_workspace(self.workspace)
        for key, name, version in rows.values_list("prompt_id", "name", "version_id"):
            found[key][name] = version
        self.numbers.learn(version for labels in found.values() for version in labels.values())
        for prompt in self.prompts.by_id.values():
            for name in sorted({*found[prompt.id], *self.labels[prompt.id]}):
                there, told = found[prompt.id].get(name), self.labels[prompt.id].get(name)
                yield None if there == told else self.misplaced(prompt, name, there, told)

    def misplaced(self, prompt: PromptChainEnds, name: str, there: int | None, told: int | None) -> Fault:
        self.numbers.learn([told])
        now, then = (self.numbers.of(key, prompt.id) for key in (there, told))
        where = f"it points at version {now}" if now is not None else "it is not there"
        put = f"at version {then}" if then is not None else "nowhere"
        return Fault(
            "label",
            f"label {name} of {format_chain_name(*prompt.line)}",
            f"{where}, and its moves left it {put}",
        )

"""Moves labels, many in one transaction, and keeps every move in its prompt's chain."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from personas.models import Workspace
from personas.tenancy.models import get_upsert_fields
from prompts.hashed_rows import build_label_move_row
from prompts.models import AgentPrompt, LabelMove, PromptLabel, PromptVersion, Release

# Of a version that a label leaves only the number is told.
DEFERRED_VERSION_FIELDS = [f"version__{name}" for name in ("segments", "sizes", "lockfile", "causes")]


@dataclass(frozen=True)
class PlannedMove:
    """Where a label shall point; no version takes it off. The caller holds the prompt locked."""

    prompt: AgentPrompt
    label: str
    version: PromptVersion | None
    reason: str
    by: str
    note: str = ""
    release: Release | None = None


def move_labels(workspace: Workspace | int, moves: Sequence[PlannedMove], *, at: datetime) -> list[LabelMove]:
    """Point the labels and append the moves; the prompts' own columns are the caller's to save."""
    if not moves:
        return []
    rows = PromptLabel.objects.in_workspace(workspace)
    prompts = {move.prompt.pk for move in moves}
    known = rows.filter(prompt__in=prompts).select_related("version").defer(*DEFERRED_VERSION_FIELDS)
    have = {(row.prompt_id, row.name): row for row in known}
    made = [build_label_move(move, have.get((move.prompt.pk, move.label)), at) for move in moves]
    LabelMove.objects.in_workspace(workspace).bulk_create(made)
    write_labels(workspace, moves, have, at)
    return made


def build_label_move(move: PlannedMove, label: PromptLabel | None, at: datetime) -> LabelMove:
    prompt = move.prompt
    row = LabelMove(
        workspace_id=prompt.workspace_id,
        prompt=prompt,
        sequence=prompt.last_move + 1,
        label=move.label,
        version=move.version,
        previous_version=label.version if label else None,
        reason=move.reason,
        note=move.note,
        release=move.release,
        author_label=move.by[:254],
        at=at,
        previous_hash=prompt.last_move_hash,
    )
    row.hash = build_label_move_row(row).hash(row.previous_hash)
    prompt.last_move, prompt.last_move_hash = row.sequence, row.hash
    return row


def write_labels(
    workspace: Workspace | int,
    moves: Sequence[PlannedMove],
    have: dict[tuple[int, str], PromptLabel],
    at: datetime,
) -> None:
    """The labels themselves: new ones, moved ones, and those taken off."""
    rows = PromptLabel.objects.in_workspace(workspace)
    new, moved, gone = [], [], []
    for move in moves:
        label = have.get((move.prompt.pk, move.label))
        if move.version is None:
            gone += [label.pk] if label else []
        elif label is None:
            prompt = move.prompt
            new.append(
                PromptLabel(
                    workspace_id=prompt.workspace_id,
                    prompt=prompt,
                    name=move.label,
                    version=move.version,
                    moved_at=at,
                )
            )
        else:
            label.prompt, label.version, label.moved_at = move.prompt, move.version, at
            moved.append(label)
    rows.bulk_create(new)
    rows.bulk_create(
        moved, update_conflicts=True, unique_fields=get_upsert_fields(), update_fields=["version", "moved_at"]
    )
    rows.filter(pk__in=gone).delete()

"""Move labels in bulk, and append each move to the hash chain of its prompt."""

from collections.abc import Sequence
from datetime import datetime

from core.db.fast import WriteBatch
from personas.events.services import add_events_to_batch, build_event
from personas.models import Event, Workspace
from personas.tenancy.models import get_upsert_fields
from prompts.models import PRODUCTION, AgentPrompt, LabelMove, PromptLabel, PromptVersion
from prompts.proof_rows import build_label_move_row
from prompts.publishing.labels.approval import check_moves
from prompts.publishing.labels.change_recorder import get_change_recorder
from prompts.publishing.labels.move_queries import query_current_labels
from prompts.publishing.labels.planned_moves import PlannedMove


def move_labels(
    workspace: Workspace | int,
    moves: Sequence[PlannedMove],
    *,
    at: datetime,
    batch: WriteBatch | None = None,
    labels: Sequence[PromptLabel] | None = None,
) -> list[LabelMove]:
    """Move the labels and append LabelMove rows. All moves of labels go through this function.

    Raise an error if a reviewed agent would get a version that was not approved, or if a version cannot be
    served: see prompts.publishing.labels.approval. Moves by a page are reviewed before the commit: see
    prompts.publishing.review. This sets `last_move`, `last_move_hash` and `is_review_kept` of the prompts;
    the caller must save the prompts. With `batch`, rows are inserted when the batch is sent, and the caller
    records the events. `labels` are the current labels of the prompts, if they are loaded; the prompts must
    have been locked before.
    """
    if not moves:
        return []
    if labels is None:
        labels = query_current_labels(workspace, {move.prompt.pk for move in moves})
    current = {(row.prompt_id, row.name): row for row in labels}
    check_moves(workspace, moves, current)
    record_label_moves(moves, current)
    label_moves = [build_label_move(move, current.get((move.prompt.pk, move.label)), at) for move in moves]
    for move in moves:
        if move.label == PRODUCTION:
            end_kept_review(move.prompt, move.version)
    writes = batch or WriteBatch()
    LabelMove.objects.insert(label_moves, batch=writes)
    write_labels(workspace, moves, current, at, writes)
    if batch is None:
        add_events_to_batch(build_move_events(label_moves), writes)
        writes.send()
    return label_moves


def end_kept_review(prompt: AgentPrompt, production: PromptVersion | None) -> None:
    """End the review that was kept when it was lifted, if production has the text of the latest version."""
    if production is not None and prompt.latest is not None and production.digest == prompt.latest.digest:
        prompt.is_review_kept = False


def build_move_events(moves: Sequence[LabelMove]) -> list[Event]:
    return [
        build_event(
            move.workspace_id,
            "label.moved",
            {
                "agent": move.prompt.agent.slug,
                "channel": move.prompt.channel.slug,
                "label": move.label,
                "number": move.version.number if move.version else None,
                "previous_number": move.previous_version.number if move.previous_version else None,
                "version_id": move.version_id,
                "reason": move.reason,
            },
        )
        for move in moves
    ]


def record_label_moves(moves: Sequence[PlannedMove], current: dict[tuple[int, str], PromptLabel]) -> None:
    """Report the moves of production, and of labels that bots can already request, to the review step.

    A new label changes nothing for bots. The removal of a label has a question of its own.
    """
    recorder = get_change_recorder()
    if recorder is None:
        return
    for move in moves:
        label = current.get((move.prompt.pk, move.label))
        if label and move.version and label.version_id == move.version.pk:
            continue
        if move.label == PRODUCTION:
            recorder.record_move(move.prompt, label.version if label else None, move.version)
        elif label and move.version:
            recorder.record_custom_move(move.prompt, move.label, label.version, move.version)


def build_label_move(move: PlannedMove, label: PromptLabel | None, at: datetime) -> LabelMove:
    prompt = move.prompt
    row = LabelMove(
        workspace_id=prompt.workspace_id,
        prompt=prompt,
        sequence=prompt.last_move + 1,
        label=move.label,
        version=move.version,
        previous_version=label.version if label else None,
        reason=str(move.reason),
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
    current: dict[tuple[int, str], PromptLabel],
    at: datetime,
    batch: WriteBatch,
) -> None:
    """Insert, update and delete the PromptLabel rows."""
    new, moved, removed = [], [], []
    for move in moves:
        label = current.get((move.prompt.pk, move.label))
        if move.version is None:
            removed += [label.pk] if label else []
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
    PromptLabel.objects.insert(new, batch=batch)
    PromptLabel.objects.insert(
        moved,
        batch=batch,
        update_conflicts=True,
        unique_fields=get_upsert_fields(),
        update_fields=["version", "moved_at"],
    )
    if removed:
        PromptLabel.objects.in_workspace(workspace).filter(pk__in=removed).delete()

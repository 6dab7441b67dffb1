"""Move labels away from versions whose text was erased, and request releases for labels that are removed."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from personas.actors import Actor
from personas.models import Erasure, Workspace
from prompts.evidence.erasure.label_builds import (
    VersionReplacements,
    describe_erased_record,
    describe_replacement,
)
from prompts.models import PRODUCTION, AgentPrompt, LabelRule, MoveReason, PromptLabel, PromptVersion
from prompts.publishing.labels.planned_moves import PlannedMove
from prompts.publishing.labels.services import apply_label_moves, lock_prompts
from prompts.publishing.releases.services import open_release


@dataclass(frozen=True)
class ErasedLabel:
    """A label that points to a version with erased text.

    A governed label gets no text that nobody approved: production of a reviewed agent, or a protected label.
    """

    prompt_id: int
    name: str
    version: PromptVersion
    is_governed: bool


def list_labels_on_versions(workspace: Workspace | int, versions: Collection[int]) -> list[ErasedLabel]:
    """List the labels that point to one of these versions."""
    rules = LabelRule.objects.in_workspace(workspace).filter(is_protected=True)
    protected = set(rules.values_list("name", flat=True))
    rows = PromptLabel.objects.in_workspace(workspace).order_by("pk")
    ids = [key for key, version in rows.values_list("pk", "version_id") if version in versions]
    labels = rows.filter(pk__in=ids).select_related("version", "prompt__agent")
    return [
        ErasedLabel(label.prompt_id, label.name, label.version, is_governed(label, protected))
        for label in labels
    ]


def is_governed(label: PromptLabel, protected: Collection[str]) -> bool:
    """Whether the label gets only text that was approved for it."""
    if label.name == PRODUCTION:
        return label.prompt.is_reviewed
    return label.name in protected


def move_labels_off_erased(
    erasure: Erasure, labels: Sequence[ErasedLabel], replacements: VersionReplacements
) -> None:
    """Move governed labels to the replacement of their version, or remove them; others to the latest version.

    Prompts whose governed label is removed get a request for a release of their latest version.
    """
    by = get_erasure_actor(erasure)
    # Lock and load the prompts again, because the rebuild has added versions and moved labels.
    ids = sorted({label.prompt_id for label in labels})
    prompts = {row.pk: row for row in lock_prompts(erasure.workspace_id, ids)}
    pointers = get_label_pointers(erasure.workspace_id, ids)
    moves = [
        move
        for label in labels
        if pointers.get((label.prompt_id, label.name)) == label.version.pk
        and (move := plan_move(erasure, label, prompts[label.prompt_id], replacements)) is not None
    ]
    if not moves:
        return
    apply_label_moves(moves, by=by)
    removed = [move for move in moves if move.version is None]
    for name in sorted({move.label for move in removed}):
        releasable = [
            move.prompt for move in removed if move.label == name and can_release(move.prompt, erasure)
        ]
        if releasable:
            message = (
                f"Replaces “{name}”, which was removed by the erasure of {describe_erased_record(erasure)}"
            )
            open_release(erasure.workspace, releasable, message=message, by=by, label=name)


def get_label_pointers(workspace: int, prompts: Sequence[int]) -> dict[tuple[int, str], int]:
    rows = PromptLabel.objects.in_workspace(workspace).filter(prompt__in=prompts)
    return {
        (prompt, name): version for prompt, name, version in rows.values_list("prompt", "name", "version")
    }


def can_release(prompt: AgentPrompt, erasure: Erasure) -> bool:
    """Whether the latest version does not contain the erased text."""
    return prompt.latest_id is not None and prompt.latest_id not in erasure.versions


def plan_move(
    erasure: Erasure,
    label: ErasedLabel,
    prompt: AgentPrompt,
    replacements: VersionReplacements,
) -> PlannedMove | None:
    """Return the move of a label, or None if there is no version that it can move to."""
    target: PromptVersion | None = None
    record = describe_erased_record(erasure)
    if label.version.pk in replacements.versions:
        target = replacements.versions[label.version.pk]
        note = describe_replacement(erasure, label.version)
    elif label.is_governed:
        note = f"Removed by the erasure of {record}. {replacements.reasons[label.version.pk]}"
    elif can_release(prompt, erasure):
        target, note = prompt.latest, f"Latest version, without {record}, which was erased"
    else:
        return None
    return PlannedMove(
        prompt, label.name, target, MoveReason.ERASURE, by=erasure.author_label, note=note[:500]
    )


def get_erasure_actor(erasure: Erasure) -> Actor:
    """Return the user who requested the erasure; a worker acts for this user."""
    return Actor(label=erasure.author_label, user=erasure.person)

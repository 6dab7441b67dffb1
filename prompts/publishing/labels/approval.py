"""The check that every label move passes: production of a reviewed agent gets only approved versions.

`move_labels` is the only code that writes labels, and calls `check_moves` first. There is one rule per
reason; a reason without a rule is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.utils.translation import gettext as _

from personas.errors import InvalidInput
from personas.models import ReleasePolicy, Workspace
from prompts.errors import NotAllowed
from prompts.models import (
    PRODUCTION,
    LabelMove,
    LabelRule,
    MoveReason,
    PromptLabel,
    PromptVersion,
    ReleaseItem,
    ReleaseStatus,
)
from prompts.publishing.labels.planned_moves import PlannedMove
from prompts.publishing.versions.selectors import is_version_intact, list_erased_versions

# Kind of the build cause if an erasure built the version from another version.
ERASURE_CAUSE = "erasure"
# By move reason: the request field that holds the version, for error messages.
VERSION_FIELDS = {MoveReason.ROLLBACK: "to", MoveReason.MOVED: "version"}
# For moves with these reasons, the version was built in the same transaction.
NEW_VERSION_REASONS = {MoveReason.BUILD, MoveReason.ERASURE}
# The current labels by prompt id and name.
CurrentLabels = Mapping[tuple[int, str], PromptLabel]


@dataclass(frozen=True)
class MoveHistory:
    """What the rules need to know about the moves, loaded with one query for all of them."""

    workspace: Workspace | int
    moves: Sequence[PlannedMove]
    current: CurrentLabels

    @cached_property
    def approved(self) -> set[tuple[int, str, int, int]]:
        """Release id, label, prompt id and version id of the items of approved releases."""
        releases = {move.release.pk for move in self.moves if move.release}
        items = ReleaseItem.objects.in_workspace(self.workspace).filter(
            release__in=releases, release__status=ReleaseStatus.APPROVED
        )
        return set(items.values_list("release_id", "release__label", "prompt_id", "version_id"))

    @cached_property
    def earlier(self) -> set[tuple[int, str, int | None]]:
        """Prompt id, label and version id of all earlier moves to the versions of these moves."""
        rows = LabelMove.objects.in_workspace(self.workspace).filter(
            version__in={move.version.pk for move in self.moves if move.version}
        )
        return set(rows.values_list("prompt_id", "label", "version_id"))


MoveRule = Callable[[PlannedMove, MoveHistory], bool]


def check_moves(workspace: Workspace | int, moves: Sequence[PlannedMove], current: CurrentLabels) -> None:
    """Raise an error unless every move is allowed.

    Raise InvalidInput if a version cannot be served, and NotAllowed if production of a reviewed agent would
    get a version that was not approved. The only exception is an override with a reason.
    """
    check_servable(workspace, moves)
    protected, history = list_protected_labels(workspace, moves), MoveHistory(workspace, moves, current)
    for move in moves:
        if is_approval_required(move, protected) and not has_approval(move, history):
            raise NotAllowed(describe_refusal(move))


def check_servable(workspace: Workspace | int, moves: Sequence[PlannedMove]) -> None:
    """Raise InvalidInput if a label would point to a version that cannot be served."""
    targets = [move for move in moves if move.version and move.reason not in NEW_VERSION_REASONS]
    if not targets:
        return
    erased = list_erased_versions(workspace, [move.version.pk for move in targets if move.version])
    for move in targets:
        if move.version is None:
            continue
        message = ""
        if move.version.pk in erased:
            message = _("Version %(number)s of %(prompt)s contains erased text and cannot be served.")
        elif move.reason == MoveReason.ROLLBACK and not is_version_intact(move.version):
            message = _("Version %(number)s of %(prompt)s failed verification, so it cannot be served.")
        if message:
            values = {"number": move.version.number, "prompt": move.prompt}
            raise InvalidInput.on(
                VERSION_FIELDS.get(MoveReason(move.reason), "prompts"),
                f"{message % values} {_('Choose another version.')}",
            )


def list_protected_labels(workspace: Workspace | int, moves: Sequence[PlannedMove]) -> set[str]:
    """Return the protected labels among those that an erasure moves."""
    names = {move.label for move in moves if move.reason == MoveReason.ERASURE}
    if not names:
        return set()
    rules = LabelRule.objects.in_workspace(workspace).filter(name__in=names, is_protected=True)
    return set(rules.values_list("name", flat=True))


def is_approval_required(move: PlannedMove, protected: set[str]) -> bool:
    """Whether the move needs an approved version.

    That is production of a reviewed agent, and of one whose review was lifted while production was behind the
    latest version. Owners may move protected labels, but an erasure is not their
    decision, so it needs an approved version there too.
    """
    if move.label == PRODUCTION:
        # Do not use `is_reviewed`, which callers have checked: a fault there must not disable this check too.
        is_reviewed = move.prompt.agent.release_policy == ReleasePolicy.REVIEWED
        return is_reviewed or move.prompt.is_review_kept
    return move.reason == MoveReason.ERASURE and move.label in protected


def has_approval(move: PlannedMove, history: MoveHistory) -> bool:
    rule = APPROVAL_RULES.get(MoveReason(move.reason))
    return rule is not None and rule(move, history)


def is_never_approved(move: PlannedMove, history: MoveHistory) -> bool:
    return False


def is_in_approved_release(move: PlannedMove, history: MoveHistory) -> bool:
    """Whether a second user approved the release, and the release contains this version."""
    if move.release is None or move.version is None:
        return False
    return (move.release.pk, move.label, move.prompt.pk, move.version.pk) in history.approved


def is_override_with_reason(move: PlannedMove, history: MoveHistory) -> bool:
    release = move.release
    return release is not None and release.is_override and bool(release.reason.strip())


def had_label_before(move: PlannedMove, history: MoveHistory) -> bool:
    """Whether the label pointed to the version before, so that it was approved then."""
    return move.version is not None and (move.prompt.pk, move.label, move.version.pk) in history.earlier


def is_built_by_erasure(move: PlannedMove, history: MoveHistory) -> bool:
    """Whether the label is removed, or the version was built from the label's version without a record."""
    if move.version is None:
        return True
    label = history.current.get((move.prompt.pk, move.label))
    return label is not None and get_erasure_base(move.version) == label.version.number


def get_erasure_base(version: PromptVersion) -> int | None:
    """Return the number of the version from which an erasure built this version; None for other versions."""
    bases = [cause.get("version") for cause in version.causes if cause.get("kind") == ERASURE_CAUSE]
    return bases[0] if bases else None


# For production of a reviewed agent: builds cannot move it; members can release and roll back, not remove it.
APPROVAL_RULES: dict[MoveReason, MoveRule] = {
    MoveReason.BUILD: is_never_approved,
    MoveReason.RELEASE: is_in_approved_release,
    MoveReason.OVERRIDE: is_override_with_reason,
    MoveReason.ROLLBACK: had_label_before,
    MoveReason.MOVED: is_never_approved,
    MoveReason.REMOVED: is_never_approved,
    MoveReason.ERASURE: is_built_by_erasure,
}


def describe_refusal(move: PlannedMove) -> str:
    values = {"agent": move.prompt.agent, "label": move.label}
    if move.version is None:
        return (
            _(
                "Releases of “%(agent)s” need approval, so “%(label)s” cannot be removed. "
                "Move it with a release instead."
            )
            % values
        )
    return _(
        "Releases of “%(agent)s” need approval, and version %(number)s was not "
        "approved for “%(label)s”. Request a release."
    ) % (values | {"number": move.version.number})

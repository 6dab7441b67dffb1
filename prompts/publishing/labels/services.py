"""Label actions of members: move, remove, protect, roll back, and unpin production."""

from collections.abc import Iterable, Sequence

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from core.db.fast import fetch_together
from personas.actors import Actor
from personas.audit.services import write_audit_event
from personas.errors import InvalidInput
from personas.models import Workspace
from personas.roles import Permission
from personas.tenancy.permissions import is_permitted
from personas.workspaces.models import slug_validator
from prompts.errors import ForeignVersion, LabelConflict, NotAllowed, UnknownLabel
from prompts.models import (
    LATEST,
    PRODUCTION,
    AgentPrompt,
    LabelMove,
    LabelRule,
    MoveReason,
    PromptLabel,
    PromptVersion,
)
from prompts.publishing.labels.move_queries import (
    find_prompt_label,
    query_latest_rows,
    query_locked_rows,
    query_protections,
)
from prompts.publishing.labels.moves import move_labels
from prompts.publishing.labels.planned_moves import PlannedMove
from prompts.publishing.versions.selectors import find_earlier_move

# Version ids of the label before and after the roll-back, keyed by prompt id.
LabelPositions = dict[int, tuple[int, int]]

AUDIT_VERBS = {MoveReason.ROLLBACK: "rolled back"}


@transaction.atomic
def move_label(
    prompt: AgentPrompt,
    label: str,
    version: PromptVersion,
    *,
    expected: int | None,
    by: Actor,
    note: str = "",
) -> LabelMove | None:
    """Point a label at a version, with optimistic locking. Return None if it points there already.

    `expected` is the id of the version that the caller believes the label points to, or None if the caller
    believes that there is no such label. If that is wrong, LabelConflict is raised.
    """
    [prompt] = lock_prompts(prompt.workspace_id, [prompt.pk])
    validate_label_name(label)
    check_label_protection(prompt.workspace_id, [label], by=by)
    check_prompt_version(prompt, version)
    if label == PRODUCTION and prompt.is_reviewed:
        raise NotAllowed(
            _("Releases of “%(agent)s” need approval. Request a release to move production.")
            % {"agent": prompt.agent}
        )
    current = find_prompt_label(prompt, label)
    if (current.version_id if current else None) != expected:
        raise LabelConflict(
            _("“%(label)s” moved after you opened this page. Check it again before you move it.")
            % {"label": label}
        )
    if current and current.version_id == version.pk:
        return None
    if label == PRODUCTION:
        prompt.is_pinned = prompt.latest_id != version.pk
    return apply_label_moves(
        [PlannedMove(prompt, label, version, MoveReason.MOVED, by=by.label, note=note)], by=by
    )[0]


@transaction.atomic
def remove_label(prompt: AgentPrompt, label: str, *, by: Actor) -> None:
    """Remove a custom label from a prompt. The history of its moves is kept."""
    [prompt] = lock_prompts(prompt.workspace_id, [prompt.pk])
    check_label_protection(prompt.workspace_id, [label], by=by)
    if label == PRODUCTION:
        raise NotAllowed(
            _("The label “production” cannot be removed, because bots use it. Roll it back instead.")
        )
    if find_prompt_label(prompt, label) is None:
        raise UnknownLabel(_("This prompt has no label “%(label)s”.") % {"label": label})
    apply_label_moves([PlannedMove(prompt, label, None, MoveReason.REMOVED, by=by.label)], by=by)


@transaction.atomic
def protect_label(workspace: Workspace, label: str, protected: bool, *, by: Actor) -> LabelRule:
    """Protect a label on all prompts of the workspace, so that only owners may move it; or unprotect it."""
    validate_label_name(label)
    require_owner(
        workspace, _("Only owners can change whether “%(label)s” is protected.") % {"label": label}, by=by
    )
    rows = LabelRule.objects.in_workspace(workspace)
    rule = rows.filter(name=label).first() or LabelRule(workspace=workspace, name=label)
    before, rule.is_protected = rule.is_protected, protected
    rule.save()
    if before != protected:
        state = {"is_protected": protected}
        action = "protected" if protected else "unprotected"
        write_audit_event(
            workspace, action, "label", rule.pk, label, by=by, before={"is_protected": before}, after=state
        )
    return rule


@transaction.atomic
def roll_back(
    prompts: Iterable[AgentPrompt],
    *,
    by: Actor,
    note: str,
    label: str = PRODUCTION,
    to: PromptVersion | None = None,
    expected: LabelPositions | None = None,
) -> list[LabelMove]:
    """Move a label of each prompt back to its previous version, or to the version `to`.

    If the label is production, it is pinned: builds do not move it until the next release. `expected` holds
    the positions shown to the user; LabelConflict is raised if they have changed.
    """
    ids = [prompt.pk for prompt in prompts]
    if not note.strip():
        raise InvalidInput.on("note", _("A reason is required."))
    if to is not None and len(ids) != 1:
        raise ForeignVersion(_("A version belongs to one prompt. Select exactly one prompt."))
    locked = lock_prompts(get_common_workspace_id(prompts), ids)
    check_label_protection(locked[0].workspace_id, [label], by=by)
    moves = [
        PlannedMove(
            prompt,
            label,
            find_rollback_target(prompt, label, to),
            MoveReason.ROLLBACK,
            by=by.label,
            note=note,
        )
        for prompt in locked
    ]
    if expected is not None and expected != get_label_positions(moves):
        raise LabelConflict(_("Production moved after you opened this page. Check the list, then roll back."))
    if label == PRODUCTION:
        for prompt in locked:
            prompt.is_pinned = True
    return apply_label_moves(moves, by=by)


def get_label_positions(moves: Sequence[PlannedMove]) -> LabelPositions:
    """Return the current and the planned version id of the label, keyed by prompt id."""
    ids = [move.prompt.pk for move in moves]
    rows = PromptLabel.objects.in_workspace(moves[0].prompt.workspace_id).filter(prompt__in=ids)
    current = dict(rows.filter(name=moves[0].label).values_list("prompt", "version"))
    return {
        move.prompt.pk: (current[move.prompt.pk], move.version.pk if move.version else 0) for move in moves
    }


def keep_review(workspace: Workspace | int, agent_id: int) -> None:
    """Keep production of an agent where it is when its review is lifted.

    Builds do not move it until it is released or unpinned. It needs approvals until it has the text of the
    latest version; the build of the same change ends this where production is not behind.
    """
    prompts = AgentPrompt.objects.in_workspace(workspace).filter(agent=agent_id)
    prompts.update(is_pinned=True, is_review_kept=True)


@transaction.atomic
def unpin_production(prompt: AgentPrompt, *, by: Actor) -> None:
    """Move production to the latest version, and let every new build move it again.

    Raise NotAllowed if releases of the agent need approval.
    """
    [prompt] = lock_prompts(prompt.workspace_id, [prompt.pk])
    if not prompt.is_pinned:
        return
    check_label_protection(prompt.workspace_id, [PRODUCTION], by=by)
    if prompt.is_reviewed:
        raise NotAllowed(
            _("Releases of “%(agent)s” need approval. Request a release to move production.")
            % {"agent": prompt.agent}
        )
    prompt.is_pinned = False
    apply_label_moves(
        [PlannedMove(prompt, PRODUCTION, prompt.latest, MoveReason.MOVED, by=by.label, note="Unpinned")],
        by=by,
    )


def find_rollback_target(prompt: AgentPrompt, label: str, to: PromptVersion | None) -> PromptVersion:
    """Return the version to roll back to: `to`, or the version that had the label before the current one.

    Raise NotAllowed if `to` never had the label, or if the label has no earlier version.
    """
    current = find_prompt_label(prompt, label)
    if current is None:
        raise UnknownLabel(_("%(prompt)s has no label “%(label)s”.") % {"label": label, "prompt": prompt})
    earlier = LabelMove.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, label=label)
    if to is not None:
        check_prompt_version(prompt, to)
        if to.pk == current.version_id:
            raise NotAllowed(
                _("“%(label)s” already points to version %(number)s.") % {"label": label, "number": to.number}
            )
        if not earlier.filter(version=to).exists():
            raise NotAllowed(
                _("“%(label)s” never pointed to version %(number)s. Release this version instead.")
                % {"number": to.number, "label": label}
            )
        return to
    last = find_earlier_move(prompt, label, current.version.number)
    if last is None or last.version is None:
        raise NotAllowed(
            _("“%(label)s” has no earlier version for %(prompt)s.") % {"label": label, "prompt": prompt}
        )
    return last.version


def apply_label_moves(moves: Sequence[PlannedMove], *, by: Actor) -> list[LabelMove]:
    """Move the labels, save the prompts and write audit events."""
    rows = move_labels(moves[0].prompt.workspace_id, moves, at=timezone.now())
    save_prompts([move.prompt for move in moves])
    for move, row in zip(moves, rows, strict=True):
        after = {"version": row.version.number if row.version else None, "note": move.note}
        # Without a version, the label was removed, by a member or by an erasure.
        verb = AUDIT_VERBS.get(move.reason, "moved") if row.version else "removed label"
        write_audit_event(
            row.workspace_id,
            verb,
            "label",
            move.prompt.pk,
            f"{move.label} of {move.prompt}",
            by=by,
            before={"version": row.previous_version.number if row.previous_version else None},
            after=after | ({"cause": "erasure"} if move.reason == MoveReason.ERASURE else {}),
        )
    return rows


def save_prompts(prompts: Iterable[AgentPrompt]) -> None:
    for prompt in prompts:
        prompt.save(update_fields=["last_move", "last_move_hash", "is_pinned", "is_review_kept"])


def lock_prompts(workspace: Workspace | int, ids: Sequence[int]) -> list[AgentPrompt]:
    """Lock prompts and load their latest versions.

    The primary key order is the same as in builds, which prevents deadlocks. A second query loads the latest
    versions: after waiting for a lock, PostgreSQL re-reads the locked row but not the rows joined to it, so a
    join could return an outdated version.
    """
    locked, latest = fetch_together(
        [query.bind(workspace, ids) for query in (query_locked_rows, query_latest_rows)]
    )
    versions = {version.pk: version for version in latest}
    for prompt in locked:
        prompt.latest = versions[prompt.latest_id] if prompt.latest_id else None
    return locked


def get_common_workspace_id(prompts: Iterable[AgentPrompt]) -> int:
    workspace_ids = {prompt.workspace_id for prompt in prompts}
    if len(workspace_ids) != 1:
        raise InvalidInput.on("prompts", _("Select at least one prompt."))
    return workspace_ids.pop()


def validate_label_name(label: str) -> None:
    if label == LATEST:
        raise NotAllowed(_("“latest” is reserved for the newest build. Use another label."))
    try:
        slug_validator(label)
    except ValidationError as error:
        raise InvalidInput.on("label", error.messages[0]) from error
    if len(label) > 40:
        raise InvalidInput.on("label", _("A label can have at most 40 characters."))


def check_prompt_version(prompt: AgentPrompt, version: PromptVersion) -> None:
    if version.prompt_id != prompt.pk or version.workspace_id != prompt.workspace_id:
        raise ForeignVersion(_("This version belongs to another prompt."))


def check_label_protection(workspace: Workspace | int, labels: Iterable[str], *, by: Actor) -> None:
    for rule in query_protections(workspace, list(labels)):
        require_owner(
            workspace, _("“%(label)s” is protected. Only owners can move it.") % {"label": rule.name}, by=by
        )


def can_move_labels(workspace: Workspace | int, labels: Iterable[str], *, by: Actor) -> bool:
    """Whether the protection of these labels allows the actor to move them."""
    try:
        check_label_protection(workspace, labels, by=by)
    except NotAllowed:
        return False
    return True


def require_owner(workspace: Workspace | int, message: str, *, by: Actor) -> None:
    """Raise NotAllowed unless the actor is an owner. A key of an owner also needs the verb `manage`."""
    if not is_permitted(workspace, by, Permission.MANAGE_MEMBERS):
        raise NotAllowed(message)

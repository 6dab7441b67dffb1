"""What people do with labels by hand: move, take off, protect, roll back, follow again."""

from collections.abc import Iterable, Sequence

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from personas.actors import Actor
from personas.audit.services import write_audit_event
from personas.errors import InvalidInput
from personas.models import Membership, ReleasePolicy, Workspace
from personas.roles import Role
from personas.workspaces.models import slug_validator
from prompts.errors import ForeignVersion, LabelConflict, NotAllowed, UnknownLabel
from prompts.labels.moves import PlannedMove, move_labels
from prompts.models import LATEST, PRODUCTION, AgentPrompt, LabelMove, LabelRule, PromptLabel, PromptVersion
from prompts.versions.selectors import find_earlier_move

# By prompt: the version that a label is at, and the one that it would go to.
LabelPositions = dict[int, tuple[int, int]]


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
    """Point a label at a version; expected is the version id it was seen at, None for a new label."""
    [prompt] = lock_prompts(prompt.workspace_id, [prompt.pk])
    validate_label_name(label)
    check_label_protection(prompt.workspace_id, [label], by=by)
    check_prompt_version(prompt, version)
    if label == PRODUCTION and prompt.agent.release_policy == ReleasePolicy.REVIEWED:
        raise NotAllowed(
            _("“%(agent)s” is reviewed: request a release to move production.") % {"agent": prompt.agent}
        )
    present = find_current_label(prompt, label)
    if (present.version_id if present else None) != expected:
        raise LabelConflict(
            _("“%(label)s” was moved after you looked. Look again before you move it.") % {"label": label}
        )
    if present and present.version_id == version.pk:
        return None
    if label == PRODUCTION:
        prompt.is_held = prompt.latest_id != version.pk
    return apply_label_moves([PlannedMove(prompt, label, version, "moved", by=by.label, note=note)], by=by)[0]


@transaction.atomic
def remove_label(prompt: AgentPrompt, label: str, *, by: Actor) -> None:
    """Remove a label of one's own from a prompt; what it pointed at stays in its history."""
    [prompt] = lock_prompts(prompt.workspace_id, [prompt.pk])
    check_label_protection(prompt.workspace_id, [label], by=by)
    if label == PRODUCTION:
        raise NotAllowed(_("Production is what bots get: roll it back, but it cannot be taken off."))
    if find_current_label(prompt, label) is None:
        raise UnknownLabel(_("There is no label “%(label)s” on this prompt.") % {"label": label})
    apply_label_moves([PlannedMove(prompt, label, None, "removed", by=by.label)], by=by)


@transaction.atomic
def protect_label(workspace: Workspace, label: str, protected: bool, *, by: Actor) -> LabelRule:
    """Let only owners move a label, wherever it stands; or everybody again."""
    validate_label_name(label)
    require_owner(workspace, _("Only owners say whether “%(label)s” is protected.") % {"label": label}, by=by)
    rows = LabelRule.objects.in_workspace(workspace)
    rule = rows.filter(name=label).first() or LabelRule(workspace=workspace, name=label)
    before, rule.is_protected = rule.is_protected, protected
    rule.save()
    if before != protected:
        state = {"is_protected": protected}
        verb = "protected" if protected else "unprotected"
        write_audit_event(
            workspace, verb, "label", rule.pk, label, by=by, before={"is_protected": before}, after=state
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
    """Put a label back to what it pointed at before, on all these prompts at once; builds leave it there.

    What is expected is what somebody saw: where each prompt's label is, and where it would go.
    """
    ids = [prompt.pk for prompt in prompts]
    if not note.strip():
        raise InvalidInput.on("note", _("Say why: those who look later will want to know."))
    if to is not None and len(ids) != 1:
        raise ForeignVersion(_("A version belongs to one prompt: name one prompt with it."))
    held = lock_prompts(get_common_workspace_id(prompts), ids)
    check_label_protection(held[0].workspace_id, [label], by=by)
    moves = [
        PlannedMove(
            prompt, label, find_rollback_target(prompt, label, to), "rollback", by=by.label, note=note
        )
        for prompt in held
    ]
    if expected is not None and expected != get_label_positions(moves):
        raise LabelConflict(_("Something moved after you looked. Look again, then roll back."))
    if label == PRODUCTION:
        for prompt in held:
            prompt.is_held = True
    return apply_label_moves(moves, by=by)


def get_label_positions(moves: Sequence[PlannedMove]) -> LabelPositions:
    """Of each prompt, the version that its label is at and the one that it would be at."""
    ids = [move.prompt.pk for move in moves]
    rows = PromptLabel.objects.in_workspace(moves[0].prompt.workspace_id).filter(prompt__in=ids)
    present = dict(rows.filter(name=moves[0].label).values_list("prompt", "version"))
    return {
        move.prompt.pk: (present[move.prompt.pk], move.version.pk if move.version else 0) for move in moves
    }


@transaction.atomic
def unpin_production(prompt: AgentPrompt, *, by: Actor) -> None:
    """Let production of an automatic agent follow each build again, from the latest on."""
    [prompt] = lock_prompts(prompt.workspace_id, [prompt.pk])
    if not prompt.is_held:
        return
    check_label_protection(prompt.workspace_id, [PRODUCTION], by=by)
    if prompt.agent.release_policy != ReleasePolicy.AUTOMATIC:
        raise NotAllowed(
            _("“%(agent)s” is reviewed: production moves by releases only.") % {"agent": prompt.agent}
        )
    prompt.is_held = False
    apply_label_moves(
        [PlannedMove(prompt, PRODUCTION, prompt.latest, "moved", by=by.label, note="Follows again")], by=by
    )


def find_rollback_target(prompt: AgentPrompt, label: str, to: PromptVersion | None) -> PromptVersion:
    """Where to go back to: only where the label has been before."""
    present = find_current_label(prompt, label)
    if present is None:
        raise UnknownLabel(
            _("“%(label)s” points at nothing on %(prompt)s.") % {"label": label, "prompt": prompt}
        )
    been = LabelMove.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, label=label)
    if to is not None:
        check_prompt_version(prompt, to)
        if to.pk == present.version_id:
            raise NotAllowed(
                _("“%(label)s” is at version %(number)s already.") % {"label": label, "number": to.number}
            )
        if not been.filter(version=to).exists():
            raise NotAllowed(
                _("Version %(number)s was never “%(label)s”. Release it instead.")
                % {"number": to.number, "label": label}
            )
        return to
    last = find_earlier_move(prompt, label, present.version.number)
    if last is None or last.version is None:
        raise NotAllowed(
            _("“%(label)s” of %(prompt)s was never anywhere before.") % {"label": label, "prompt": prompt}
        )
    return last.version


def apply_label_moves(moves: Sequence[PlannedMove], *, by: Actor) -> list[LabelMove]:
    """Move, save the prompts, and note it where people look."""
    made = move_labels(moves[0].prompt.workspace_id, moves, at=timezone.now())
    save_prompts([move.prompt for move in moves])
    for move, row in zip(moves, made, strict=True):
        write_audit_event(
            row.workspace_id,
            {"rollback": "rolled back", "removed": "took off"}.get(move.reason, "moved"),
            "label",
            move.prompt.pk,
            f"{move.label} of {move.prompt}",
            by=by,
            before={"version": row.previous_version.number if row.previous_version else None},
            after={"version": row.version.number if row.version else None, "note": move.note},
        )
    return made


def save_prompts(prompts: Iterable[AgentPrompt]) -> None:
    for prompt in prompts:
        prompt.save(update_fields=["last_move", "last_move_hash", "is_held"])


def lock_prompts(workspace: Workspace | int, ids: Sequence[int]) -> list[AgentPrompt]:
    """Locked in one order, as builds lock them.

    The latest versions are asked for afterwards: who waited for a lock gets the row as it is now, but of what
    was joined to it only what there was before, and a version made meanwhile would be missing.
    """
    rows = AgentPrompt.objects.in_workspace(workspace).filter(pk__in=ids)
    held = list(rows.select_related("agent", "channel").order_by("pk").select_for_update(of=("self",)))
    newest = [prompt.latest_id for prompt in held if prompt.latest_id]
    versions = PromptVersion.objects.in_workspace(workspace).in_bulk(newest)
    for prompt in held:
        prompt.latest = versions[prompt.latest_id] if prompt.latest_id else None
    return held


def get_common_workspace_id(prompts: Iterable[AgentPrompt]) -> int:
    found = {prompt.workspace_id for prompt in prompts}
    if len(found) != 1:
        raise InvalidInput.on("prompts", _("Choose at least one prompt."))
    return found.pop()


def find_current_label(prompt: AgentPrompt, label: str) -> PromptLabel | None:
    rows = PromptLabel.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, name=label)
    return rows.select_related("version").first()


def validate_label_name(label: str) -> None:
    if label == LATEST:
        raise NotAllowed(_("“latest” follows every build by itself."))
    try:
        slug_validator(label)
    except ValidationError as error:
        raise InvalidInput.on("label", error.messages[0]) from error
    if len(label) > 40:
        raise InvalidInput.on("label", _("A label has at most 40 characters."))


def check_prompt_version(prompt: AgentPrompt, version: PromptVersion) -> None:
    if version.prompt_id != prompt.pk or version.workspace_id != prompt.workspace_id:
        raise ForeignVersion(_("That version belongs to another prompt."))


def check_label_protection(workspace: Workspace | int, labels: Iterable[str], *, by: Actor) -> None:
    rules = LabelRule.objects.in_workspace(workspace).filter(name__in=list(labels), is_protected=True)
    if rule := rules.first():
        require_owner(
            workspace, _("“%(label)s” is protected: only owners move it.") % {"label": rule.name}, by=by
        )


def require_owner(workspace: Workspace | int, words: str, *, by: Actor) -> None:
    members = Membership.objects.in_workspace(workspace).filter(user=by.user, role=Role.OWNER)
    if by.user is None or not members.exists():
        raise NotAllowed(words)

"""Release workflow: request, approval by a second user, and one transaction that moves all labels.

A release is bound to the digests of its versions. If a prompt is rebuilt with another digest before the
release runs, the release is voided.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from core.text.lists import format_short_list
from personas.actors import Actor
from personas.audit.services import write_audit_event
from personas.errors import InvalidInput
from personas.events.services import record_event
from personas.models import Membership, User, Workspace
from personas.records.services import convert_save_errors
from personas.roles import Permission, has_permission
from personas.tenancy.lost_nodes import lock_workspace
from prompts.errors import NotAllowed, NothingToRelease, OwnChange, ReleaseClosed
from prompts.models import (
    PRODUCTION,
    AgentPrompt,
    MoveReason,
    PromptLabel,
    Release,
    ReleaseItem,
    ReleaseReviewer,
    ReleaseStatus,
)
from prompts.publishing.labels.moves import move_labels
from prompts.publishing.labels.planned_moves import PlannedMove
from prompts.publishing.labels.services import (
    check_label_protection,
    lock_prompts,
    save_prompts,
    validate_label_name,
)
from prompts.publishing.releases.authors import list_authored_items
from prompts.publishing.releases.changes import measure_prefixes
from prompts.publishing.releases.selectors import hash_release_items, list_release_items

# Event types by the action in the audit log.
RELEASE_EVENTS = {
    "requested": "release.requested",
    "requested again": "release.requested",
    "review requested": "release.review_requested",
    "commented": "release.commented",
    "changes requested": "release.changes_requested",
    "approved": "release.approved",
    "rejected": "release.rejected",
    "withdrawn": "release.withdrawn",
    "voided": "release.voided",
    "released": "release.released",
    "overridden": "release.released",
}


@transaction.atomic
def request_release(
    workspace: Workspace,
    prompts: Iterable[AgentPrompt],
    *,
    message: str,
    by: Actor,
    label: str = PRODUCTION,
    reviewers: Sequence[Membership] = (),
) -> Release:
    """Request a release that moves a label of these prompts to their latest versions.

    `reviewers` are asked by name to review it. Other members may approve it too.
    """
    validate_label_name(label)
    check_label_protection(workspace, [label], by=by)
    release = open_release(workspace, prompts, message=message, by=by, label=label)
    if reviewers:
        add_reviewers(release, reviewers, by=by)
    return release


@transaction.atomic
def request_review(release: Release, reviewers: Sequence[Membership], *, by: Actor) -> Release:
    """Ask members by name to review an open release."""
    release = lock_release(release, ReleaseStatus.REQUESTED, ReleaseStatus.APPROVED)
    add_reviewers(release, reviewers, by=by)
    return release


@transaction.atomic
def request_again(release: Release, *, by: Actor) -> Release:
    """Request an open or voided release again, with the latest versions of its prompts.

    If versions are replaced, an approval does not count any more, because it is for exact versions. Then who
    requests it again is the requester, and cannot approve it. Timeline, comments and reviewers stay, and the
    reviewers are notified again.
    """
    release = lock_release(release, ReleaseStatus.REQUESTED, ReleaseStatus.APPROVED, ReleaseStatus.VOIDED)
    check_label_protection(release.workspace_id, [release.label], by=by)
    replaced = replace_outdated_items(release)
    if not replaced and release.status == ReleaseStatus.APPROVED:
        raise NothingToRelease(_("This release is already approved with the latest versions."))
    if replaced or release.status == ReleaseStatus.VOIDED:
        release.status, release.reason = ReleaseStatus.REQUESTED, ""
        release.decided_at, release.decided_by, release.decided_label = None, None, ""
        release.requested_by, release.requested_label = by.user, by.label
        release.save()
    if replaced:
        save_prefixes(release)
    log_release_event(release, "requested again", by=by, audit={"replaced": replaced})
    reviewers = ReleaseReviewer.objects.in_workspace(release.workspace_id).filter(release=release)
    members = Membership.objects.in_workspace(release.workspace_id).filter(user__in=reviewers.values("user"))
    ids = sorted(members.exclude(user=by.user).values_list("pk", flat=True))
    if ids:
        log_release_event(release, "review requested", by=by, extra={"member_ids": ids})
    return release


def replace_outdated_items(release: Release) -> list[str]:
    """Let the items of a release point to the latest versions. Return what was replaced: “prompt: 3 → 5”."""
    items = {item.prompt_id: item for item in load_release_items(release)}
    labels = PromptLabel.objects.in_workspace(release.workspace_id).filter(
        name=release.label, prompt__in=list(items)
    )
    current = {row.prompt_id: row.version for row in labels.select_related("version")}
    replaced = []
    for prompt in lock_prompts(release.workspace_id, list(items)):
        item, latest = items[prompt.pk], prompt.latest
        if latest is None or latest.digest == item.digest:
            continue
        replaced.append(f"{item.prompt}: {item.version.number} → {latest.number}")
        item.version, item.digest, item.before = latest, latest.digest, current.get(prompt.pk)
        item.save()
    return replaced


def save_prefixes(release: Release) -> None:
    """Store what the review shows about prompt caches, so that an erasure does not change it."""
    release.cache_prefixes = measure_prefixes(release.workspace_id, list_release_items(release))
    release.save(update_fields=["cache_prefixes"])


def add_reviewers(release: Release, reviewers: Sequence[Membership], *, by: Actor) -> None:
    """Store who was asked to review a release. Who was asked before is not asked again."""
    rows = ReleaseReviewer.objects.in_workspace(release.workspace_id).filter(release=release)
    known = set(rows.values_list("user_id", flat=True))
    new = [member for member in reviewers if member.user_id not in known]
    for member in new:
        check_reviewer(release, member)
        ReleaseReviewer(
            workspace_id=release.workspace_id,
            release=release,
            user_id=member.user_id,
            requested_label=by.label,
        ).save()
    if new:
        extra = {"member_ids": sorted(member.pk for member in new)}
        log_release_event(release, "review requested", by=by, extra=extra)


def check_reviewer(release: Release, member: Membership) -> None:
    """Raise InvalidInput unless the member may approve the release."""
    if not has_permission(member.role, Permission.APPROVE):
        raise InvalidInput.on(
            "reviewers",
            _("%(person)s cannot approve releases. Choose another reviewer.") % {"person": member.user},
        )
    if member.user_id == release.requested_by_id:
        raise InvalidInput.on(
            "reviewers",
            _("%(person)s requested this release and cannot review it.") % {"person": member.user},
        )


@transaction.atomic
def open_release(
    workspace: Workspace, prompts: Iterable[AgentPrompt], *, message: str, by: Actor, label: str
) -> Release:
    """Open a release without checking whether the actor may move the label.

    It moves nothing before it is approved, and an erasure opens one for a label that it removed.
    """
    lock_workspace(workspace.pk)
    locked = lock_prompts(workspace, [prompt.pk for prompt in prompts])
    labels = PromptLabel.objects.in_workspace(workspace).filter(
        name=label, prompt__in=[row.pk for row in locked]
    )
    current = {row.prompt_id: row.version for row in labels.select_related("version")}
    changed = [row for row in locked if row.latest and current.get(row.pk) != row.latest]
    if not changed:
        raise NothingToRelease(
            _("“%(label)s” already points to the latest version of every prompt.") % {"label": label}
        )
    release = Release(
        workspace=workspace,
        number=get_next_release_number(workspace),
        label=label,
        message=message,
        requested_by=by.user,
        requested_label=by.label,
    )
    with convert_save_errors():
        release.full_clean(
            exclude=["requested_by", "decided_by", "decided_at", "released_at", "cache_prefixes"]
        )
        release.save()
    for row in changed:
        if row.latest:
            ReleaseItem(
                workspace=workspace,
                release=release,
                prompt=row,
                version=row.latest,
                digest=row.latest.digest,
                before=current.get(row.pk),
            ).save()
    save_prefixes(release)
    log_release_event(release, "requested", by=by)
    return release


@transaction.atomic
def approve_release(release: Release, *, by: Actor, seen: str = "") -> Release:
    """Approve a release. The user who requested it and the authors of its changes cannot approve it.

    If a prompt has been rebuilt with another digest, the release is voided instead. `seen` is the hash of
    the versions that the reviewer has seen: raise NotAllowed if they were replaced since.
    """
    release = lock_release(release, ReleaseStatus.REQUESTED)
    if seen and seen != hash_release_items(load_release_items(release)):
        raise NotAllowed(
            _(
                "The versions in this release were replaced after you opened the page. "
                "Review the new versions."
            )
        )
    if by.user is None:
        raise NotAllowed(_("Only a member can approve a release."))
    if by.user == release.requested_by:
        raise OwnChange(describe_own_part(release, [], by.user))
    if void_if_changed(release, by=by):
        return release
    if reason := describe_own_part(release, load_release_items(release), by.user):
        raise OwnChange(reason)
    save_decision(release, ReleaseStatus.APPROVED, by=by)
    log_release_event(release, "approved", by=by)
    return release


def describe_own_part(release: Release, items: Sequence[ReleaseItem], user: User) -> str:
    """Return why the user cannot approve the release: the request or a change. Empty if nothing prevents."""
    if release.requested_by_id == user.pk:
        return _("A member other than the requester must approve this release, and you requested it.")
    authored = list_authored_items(release, items, user)
    if not authored:
        return ""
    return _(
        "Another member must approve this release, because you changed %(names)s "
        "since the last release: %(change)s. An owner or admin can release it without "
        "approval, with a reason."
    ) % {
        "names": format_short_list([str(one.item.prompt) for one in authored]),
        "change": authored[0].change,
    }


@transaction.atomic
def run_release(release: Release, *, by: Actor) -> Release:
    """Move all labels of a release in one transaction.

    Raise NotAllowed if it contains a reviewed agent and is not approved. If a prompt has been rebuilt with
    another digest, the release is voided instead.
    """
    release = lock_release(release, ReleaseStatus.REQUESTED, ReleaseStatus.APPROVED)
    check_label_protection(release.workspace_id, [release.label], by=by)
    if release.status == ReleaseStatus.REQUESTED and (names := list_agents_to_review(release)):
        raise NotAllowed(
            ngettext(
                "Releases of %(names)s need approval from another member.",
                "Releases of %(names)s need approval from another member.",
                len(names),
            )
            % {"names": format_short_list(names)}
        )
    if void_if_changed(release, by=by):
        return release
    return move_release_labels(release, MoveReason.RELEASE, by=by)


@transaction.atomic
def override_release(release: Release, *, reason: str, by: Actor) -> Release:
    """Run a release without approval, for emergencies. The reason is required and shown to all members."""
    release = lock_release(release, ReleaseStatus.REQUESTED, ReleaseStatus.APPROVED)
    if not reason.strip():
        raise InvalidInput.on("reason", _("Enter the reason for releasing without approval."))
    check_label_protection(release.workspace_id, [release.label], by=by)
    if void_if_changed(release, by=by):
        return release
    release.reason, release.is_override = reason.strip()[:500], True
    return move_release_labels(release, MoveReason.OVERRIDE, by=by)


@transaction.atomic
def reject_release(release: Release, *, reason: str, by: Actor) -> Release:
    release = lock_release(release, ReleaseStatus.REQUESTED, ReleaseStatus.APPROVED)
    if not reason.strip():
        raise InvalidInput.on("reason", _("Enter a reason, so that the author knows what to fix."))
    release.reason = reason.strip()[:500]
    save_decision(release, ReleaseStatus.REJECTED, by=by)
    log_release_event(release, "rejected", by=by)
    return release


@transaction.atomic
def withdraw_release(release: Release, *, by: Actor) -> Release:
    release = lock_release(release, ReleaseStatus.REQUESTED, ReleaseStatus.APPROVED)
    save_decision(release, ReleaseStatus.WITHDRAWN, by=by)
    log_release_event(release, "withdrawn", by=by)
    return release


def lock_release(release: Release, *allowed: ReleaseStatus) -> Release:
    rows = Release.objects.in_workspace(release.workspace_id).select_related("workspace", "requested_by")
    release = rows.select_for_update(of=("self",)).get(pk=release.pk)
    if release.status not in allowed:
        raise ReleaseClosed(
            _("%(release)s is already %(status)s.")
            % {"release": release, "status": release.get_status_display().lower()}
        )
    return release


def void_if_changed(release: Release, *, by: Actor) -> bool:
    """Void the release if a prompt was rebuilt with another digest after the request; return whether it was.

    The names of the rebuilt prompts are stored as the reason.
    """
    items = list(load_release_items(release))
    prompts = {row.pk: row for row in lock_prompts(release.workspace_id, [item.prompt_id for item in items])}
    changed = [
        str(prompts[item.prompt_id])
        for item in items
        if (latest := prompts[item.prompt_id].latest) is None or latest.digest != item.digest
    ]
    if not changed:
        return False
    names = format_short_list(changed)
    release.reason = f"Changed after the request: {names}. Request the release again."[:500]
    save_decision(release, ReleaseStatus.VOIDED, by=by)
    log_release_event(release, "voided", by=by)
    return True


def move_release_labels(release: Release, reason: MoveReason, *, by: Actor) -> Release:
    items = list(load_release_items(release))
    prompts = {row.pk: row for row in lock_prompts(release.workspace_id, [item.prompt_id for item in items])}
    moves = [
        PlannedMove(
            prompts[item.prompt_id],
            release.label,
            item.version,
            reason,
            by=by.label,
            note=release.reason,
            release=release,
        )
        for item in items
    ]
    now = timezone.now()
    move_labels(release.workspace_id, moves, at=now)
    for prompt in prompts.values():
        prompt.is_pinned = prompt.is_pinned and release.label != PRODUCTION
    save_prompts(prompts.values())
    release.status, release.released_at = ReleaseStatus.RELEASED, now
    if release.decided_at is None:
        save_decision(release, ReleaseStatus.RELEASED, by=by)
    release.save()
    log_release_event(release, "overridden" if release.is_override else "released", by=by)
    return release


def save_decision(release: Release, status: ReleaseStatus, *, by: Actor) -> None:
    release.status, release.decided_at = status, timezone.now()
    release.decided_by, release.decided_label = by.user, by.label
    release.save()


def load_release_items(release: Release) -> Sequence[ReleaseItem]:
    rows = ReleaseItem.objects.in_workspace(release.workspace_id).filter(release=release)
    return list(
        rows.select_related("version", "before", "prompt__agent", "prompt__channel").order_by("prompt_id")
    )


def list_agents_to_review(release: Release) -> list[str]:
    return sorted({str(item.prompt.agent) for item in load_release_items(release) if item.prompt.is_reviewed})


def get_next_release_number(workspace: Workspace) -> int:
    last = (
        Release.objects.in_workspace(workspace).order_by("-number").values_list("number", flat=True).first()
    )
    return (last or 0) + 1


def log_release_event(
    release: Release,
    action: str,
    *,
    by: Actor,
    extra: Mapping[str, Any] | None = None,
    audit: Mapping[str, Any] | None = None,
) -> None:
    """Write the audit event and the event of an action. `extra` are further ids for both."""
    extra = extra or {}
    after = {"label": release.label, "message": release.message, "reason": release.reason, **extra}
    after |= audit or {}
    write_audit_event(release.workspace_id, action, "release", release.pk, str(release), by=by, after=after)
    data = {"release_id": release.pk, "number": release.number, "label": release.label}
    data |= extra or {"is_override": release.is_override}
    record_event(release.workspace_id, RELEASE_EVENTS[action], data, by=by)

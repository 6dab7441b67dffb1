"""Actions on context files: approve, ignore, waive findings, assign skills to agents, require trust."""

from collections.abc import Callable, Iterable
from datetime import date, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from personas.actors import SYSTEM_ACTOR, Actor
from personas.audit.services import write_audit_event
from personas.errors import DomainError, InvalidInput
from personas.events.services import record_events
from personas.models import Agent, Workspace
from personas.signals import agent_changed
from skills.files.policy import policy_for
from skills.files.selectors import list_untrusted_skills
from skills.files.status_changes import apply_statuses, build_file_event, list_reader_ids, notify_readers
from skills.files.statuses import is_same_content
from skills.models import AssignedTo, ContextFile, FileAgent, FileStatus, Source, Verdict, Waiver
from skills.sources.locks import lock_source

MAX_WAIVER_PERIOD = timedelta(days=365)


class FileNotApprovable(DomainError):
    """The action is not possible for this file, for example because its latest revision is invalid."""

    code = "invalid_file_status"


class StaleFileDigest(DomainError):
    """The file has changed since the user viewed it."""

    code = "conflict"


@transaction.atomic
def approve_file(file: ContextFile, *, digest: str, by: Actor) -> ContextFile:
    """Approve the current content of a file or, if the file is missing, its removal.

    `digest` identifies the content that the user saw; it is empty for a missing file. Approving a skill also
    marks its content as trusted.
    """

    def approve(file: ContextFile) -> None:
        check_seen_digest(file, digest)
        if file.exists:
            check_file_usable(file)
            file.approved, file.rejected_digest = file.latest, ""
            if file.file_kind == "skill" and file.latest:
                file.trusted_digest = file.latest.digest
        file.is_resolved = True

    approved = change_file(file, "approved", approve, by=by)
    if approved.file_kind == "skill" and approved.exists:
        record_events([build_file_event(approved, "skill.trusted")])
    return approved


@transaction.atomic
def revert_file(file: ContextFile, *, digest: str, by: Actor) -> ContextFile:
    """Reject the current content of a file: prompts use the approved revision, or none if there is none.

    The file itself is not changed. Its next content is reviewed again.
    """

    def revert(file: ContextFile) -> None:
        check_seen_digest(file, digest)
        if file.latest is None or file.status not in (FileStatus.NEW, FileStatus.CHANGED):
            raise FileNotApprovable(_("There is no change to revert."))
        file.rejected_digest, file.is_resolved = file.latest.digest, True

    return change_file(file, "reverted", revert, by=by)


@transaction.atomic
def ignore_file(file: ContextFile, *, by: Actor) -> ContextFile:
    """Exclude a file from every prompt, including its future revisions."""

    def ignore(file: ContextFile) -> None:
        file.is_ignored = file.is_resolved = True

    return change_file(file, "ignored", ignore, by=by)


@transaction.atomic
def unignore_file(file: ContextFile, *, by: Actor) -> ContextFile:
    """Undo `ignore_file`. The file returns to the inbox unless its latest revision is already approved."""

    def unignore(file: ContextFile) -> None:
        file.is_ignored, file.is_resolved = (
            False,
            file.latest is not None and is_same_content(file.latest, file.approved),
        )

    return change_file(file, "unignored", unignore, by=by)


@transaction.atomic
def waive_findings(file: ContextFile, *, digest: str, reason: str, until: date, by: Actor) -> Waiver:
    """Allow a quarantined revision to be used through the day `until`, despite its findings.

    The waiver applies only to content with this digest. The revision also counts as approved and, if the
    file is a skill, as trusted. An open waiver for the same file and digest is ended and replaced.
    """
    source = lock_source(file.source)
    file = reload_file(file)
    check_seen_digest(file, digest)
    if file.latest is None or file.latest.verdict != Verdict.BLOCKED:
        raise FileNotApprovable(_("This file is not in quarantine."))
    today = timezone.now().date()
    if not today <= until <= today + MAX_WAIVER_PERIOD:
        raise InvalidInput.on("until", _("Choose a date between today and one year from now."))
    Waiver.objects.in_workspace(file.workspace_id).filter(file=file, digest=digest, ended_at=None).update(
        ended_at=timezone.now()
    )
    waiver = Waiver(
        workspace_id=file.workspace_id,
        file=file,
        digest=digest,
        reason=reason,
        until=until,
        person=by.user,
        author_label=by.label,
    )
    try:
        waiver.full_clean(exclude=["person", "author_label", "ended_at"])
    except ValidationError as error:
        raise InvalidInput.from_validation(error) from error
    waiver.save()
    file.approved, file.is_resolved = file.latest, True
    if file.file_kind == "skill":
        file.trusted_digest = digest
    after = {"reason": waiver.reason, "until": until.isoformat(), "digest": digest}
    apply_file_change(source, file, "waived", {}, after, by=by)
    return waiver


@transaction.atomic
def end_waiver(waiver: Waiver, *, by: Actor) -> None:
    """End a waiver that was revoked or has expired. The content that it allowed is quarantined again."""
    source = lock_source(waiver.file.source)
    rows = Waiver.objects.in_workspace(waiver.workspace_id).filter(pk=waiver.pk, ended_at=None)
    if not rows.update(ended_at=timezone.now()):
        return
    file = reload_file(waiver.file)
    if file.latest and file.latest.digest == waiver.digest:
        file.is_resolved = False
    apply_file_change(source, file, "waiver ended", {"digest": waiver.digest}, {}, by=by)


def end_expired_waivers(today: date) -> int:
    """End the expired waivers of all workspaces and return their number. Called by the periodic sweep."""
    expired = list(Waiver.unscoped.filter(ended_at=None, until__lt=today).select_related("file__source"))
    for waiver in expired:
        end_waiver(waiver, by=SYSTEM_ACTOR)
    return len(expired)


@transaction.atomic
def assign_skill_file(
    file: ContextFile, assigned_to: str, agents: Iterable[Agent], *, by: Actor
) -> ContextFile:
    """Set which agents get a discovered skill. `agents` is used only with `AssignedTo.SELECTED`."""
    if file.file_kind != "skill":
        raise FileNotApprovable(
            _("Only skills can be assigned to agents. Other files follow the discovery rules.")
        )
    source = lock_source(file.source)
    file = reload_file(file)
    before = assignment_json(file)
    previous_reader_ids = list_reader_ids(source, [file])
    file.assigned_to = AssignedTo(assigned_to)
    links = FileAgent.objects.in_workspace(file.workspace_id).filter(file=file)
    links.delete()
    if file.assigned_to == AssignedTo.SELECTED:
        for agent in agents:
            FileAgent(workspace_id=file.workspace_id, file=file, agent=agent).save()
    file.save(update_fields=["assigned_to"])
    after = assignment_json(file)
    if before != after:
        write_audit_event(
            file.workspace_id,
            "assigned",
            "file",
            file.pk,
            format_audit_label(file),
            by=by,
            before=before,
            after=after,
        )
        agent_ids = sorted({*previous_reader_ids, *list_reader_ids(source, [file])})
        agent_changed.send(sender=Source, workspace_id=file.workspace_id, agent_ids=agent_ids, by=by)
    return file


def assignment_json(file: ContextFile) -> dict[str, Any]:
    links = FileAgent.objects.in_workspace(file.workspace_id).filter(file=file)
    return {
        "scope": file.assigned_to,
        "agents": sorted(links.values_list("agent__slug", flat=True)),
    }


@transaction.atomic
def set_trust_requirement(
    workspace: Workspace, needed: bool, *, by: Actor, is_kept: bool = True
) -> list[ContextFile]:
    """Set whether agents get a discovered skill only after a user has trusted its current content.

    Return the skills in use that nobody has trusted when trust becomes needed. They stay in use and count as
    trusted by this user; without `is_kept`, prompts lose them until someone trusts them.
    """
    workspace = Workspace.objects.select_for_update().get(pk=workspace.pk)
    if workspace.skills_need_trust == needed:
        return []
    sources = [lock_source(source) for source in Source.objects.in_workspace(workspace).order_by("pk")]
    untrusted = list(list_untrusted_skills(workspace)) if needed else []
    if is_kept:
        for file in untrusted:
            file.trusted_digest = file.active.digest if file.active else ""
            file.save(update_fields=["trusted_digest"])
    workspace.skills_need_trust = needed
    workspace.save(update_fields=["skills_need_trust"])
    paths = [format_audit_label(file) for file in untrusted]
    status: dict[str, Any] = {"skills_need_trust": needed}
    if paths:
        status["trusted" if is_kept else "removed"] = paths
    before = {"skills_need_trust": not needed}
    write_audit_event(
        workspace, "edited", "workspace", workspace.pk, workspace.name, by=by, before=before, after=status
    )
    for source in sources:
        # `lock_source` loaded the workspace as it was before the change above.
        source.workspace = workspace
        reapply_statuses(source, by=by)
    return untrusted


def reapply_statuses(source: Source, *, by: Actor = SYSTEM_ACTOR) -> None:
    """Recompute the statuses of all files of a source with its current policy, and notify affected agents."""
    rows = ContextFile.objects.in_workspace(source.workspace_id).filter(source=source)
    files = list(rows.select_related("latest", "approved", "active"))
    notify_readers(source, apply_statuses(files, policy_for(source), now=timezone.now()), by=by)


def change_file(
    file: ContextFile, action: str, apply: Callable[[ContextFile], None], *, by: Actor
) -> ContextFile:
    source = lock_source(file.source)
    file = reload_file(file)
    before = file_status_json(file)
    apply(file)
    return apply_file_change(source, file, action, before, None, by=by)


def apply_file_change(
    source: Source,
    file: ContextFile,
    action: str,
    before: dict[str, Any],
    after: dict[str, Any] | None,
    *,
    by: Actor,
) -> ContextFile:
    """Recompute and save the file's status, write the audit event, and notify the agents that read the file.

    The new status is always part of the audit event; `after` holds further values for it.
    """
    changed_files = apply_statuses([file], policy_for(source), now=timezone.now())
    write_audit_event(
        file.workspace_id,
        action,
        "file",
        file.pk,
        format_audit_label(file),
        by=by,
        before=before,
        after=file_status_json(file) if after is None else after | file_status_json(file),
    )
    notify_readers(source, changed_files, by=by)
    return file


def reload_file(file: ContextFile) -> ContextFile:
    rows = ContextFile.objects.in_workspace(file.workspace_id)
    return rows.select_related("source", "latest", "approved", "active").get(pk=file.pk)


def file_status_json(file: ContextFile) -> dict[str, Any]:
    return {"status": str(file.status), "active_digest": file.active.digest if file.active else None}


def format_audit_label(file: ContextFile) -> str:
    return f"{file.source.slug}/{file.path}"[-254:]


def check_seen_digest(file: ContextFile, digest: str) -> None:
    """Optimistic concurrency check: raise StaleFileDigest if the file has changed since the user saw it."""
    current_digest = file.latest.digest if file.latest and file.exists else ""
    if digest != current_digest:
        raise StaleFileDigest(
            _("The file changed after you opened this page. Check it again before you decide.")
        )


def check_file_usable(file: ContextFile) -> None:
    if file.status == FileStatus.QUARANTINED:
        raise FileNotApprovable(
            _("This revision is in quarantine. Fix the file, or allow its findings first.")
        )
    if file.status == FileStatus.INVALID:
        raise FileNotApprovable(
            (_("This revision cannot be used. %(problem)s") % {"problem": file.problem}).strip()
        )

"""What a person can do with a found file: adopt, ignore, waive, trust, hand to agents."""

from collections.abc import Callable, Iterable
from datetime import date, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from personas.actors import SYSTEM, Actor
from personas.audit.services import note_event
from personas.errors import DomainError, Invalid
from personas.models import Agent, Workspace
from personas.signals import agent_changed
from skills.files.policy import house_of
from skills.files.state_changes import readers_of, ring_readers, settle
from skills.models import ContextFile, FileAgent, FileState, Reach, Source, Verdict, Waiver
from skills.sources.locks import hold

LONGEST_WAIVER = timedelta(days=365)


class NotAdoptable(DomainError):
    """A file whose newest revision cannot be used."""

    code = "not_adoptable"


class ChangedMeanwhile(DomainError):
    """The file is no longer what the person looked at."""

    code = "conflict"


@transaction.atomic
def adopt_file(file: ContextFile, *, digest: str, by: Actor) -> ContextFile:
    """Agree to what the file says now, or to its being gone; the digest is what the person saw."""

    def adopt(file: ContextFile) -> None:
        refuse_unless_seen(file, digest)
        if file.is_there:
            refuse_unusable(file)
            file.agreed = file.newest
            if file.file_kind == "skill" and file.newest:
                file.trusted_digest = file.newest.digest
        file.is_settled = True

    return change(file, "adopted", adopt, by=by)


@transaction.atomic
def ignore_file(file: ContextFile, *, by: Actor) -> ContextFile:
    """Leave a file out of every prompt, whatever it will say."""

    def ignore(file: ContextFile) -> None:
        file.is_ignored = file.is_settled = True

    return change(file, "ignored", ignore, by=by)


@transaction.atomic
def heed_file(file: ContextFile, *, by: Actor) -> ContextFile:
    """Undo `ignore_file`; the file comes back as news."""

    def heed(file: ContextFile) -> None:
        file.is_ignored, file.is_settled = (
            False,
            file.newest_id is not None and file.newest_id == file.agreed_id,
        )

    return change(file, "heeded", heed, by=by)


@transaction.atomic
def waive_findings(file: ContextFile, *, digest: str, reason: str, until: date, by: Actor) -> Waiver:
    """Let a quarantined revision be used until a day, for a reason; bound to exactly this content."""
    source = hold(file.source)
    file = fresh(file)
    refuse_unless_seen(file, digest)
    if file.newest is None or file.newest.verdict != Verdict.BLOCKED:
        raise NotAdoptable(_("Nothing of this file is in quarantine."))
    today = timezone.now().date()
    if not today <= until <= today + LONGEST_WAIVER:
        raise Invalid.on("until", _("Choose a day from today to a year from now."))
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
        person_label=by.label,
    )
    try:
        waiver.full_clean(exclude=["person", "person_label", "ended_at"])
    except ValidationError as error:
        raise Invalid.from_validation(error) from error
    waiver.save()
    file.agreed, file.is_settled = file.newest, True
    if file.file_kind == "skill":
        file.trusted_digest = digest
    after = {"reason": waiver.reason, "until": until.isoformat(), "digest": digest}
    conclude(source, file, "waived", {}, after, by=by)
    return waiver


@transaction.atomic
def end_waiver(waiver: Waiver, *, by: Actor) -> None:
    """Take a waiver back, or note that its last day has passed: the content is in quarantine again."""
    source = hold(waiver.file.source)
    rows = Waiver.objects.in_workspace(waiver.workspace_id).filter(pk=waiver.pk, ended_at=None)
    if not rows.update(ended_at=timezone.now()):
        return
    file = fresh(waiver.file)
    if file.newest and file.newest.digest == waiver.digest:
        file.is_settled = False
    conclude(source, file, "waiver ended", {"digest": waiver.digest}, {}, by=by)


def end_lapsed_waivers(today: date) -> int:
    """For the schedule: end what has run out, in every workspace."""
    lapsed = list(Waiver.unscoped.filter(ended_at=None, until__lt=today).select_related("file__source"))
    for waiver in lapsed:
        end_waiver(waiver, by=SYSTEM)
    return len(lapsed)


@transaction.atomic
def hand_to_agents(file: ContextFile, reach: str, agents: Iterable[Agent], *, by: Actor) -> ContextFile:
    """Say which agents a discovered skill is for."""
    if file.file_kind != "skill":
        raise NotAdoptable(_("Only skills are handed to agents; other files follow the rules."))
    source = hold(file.source)
    file = fresh(file)
    before = reach_of(file)
    fed = readers_of(source, [file])
    file.reach = Reach(reach)
    links = FileAgent.objects.in_workspace(file.workspace_id).filter(file=file)
    links.delete()
    if file.reach == Reach.CHOSEN:
        for agent in agents:
            FileAgent(workspace_id=file.workspace_id, file=file, agent=agent).save()
    file.save(update_fields=["reach"])
    after = reach_of(file)
    if before != after:
        note_event(
            file.workspace_id,
            "handed out",
            "file",
            file.pk,
            label_of(file),
            by=by,
            before=before,
            after=after,
        )
        agent_ids = sorted({*fed, *readers_of(source, [file])})
        agent_changed.send(sender=Source, workspace_id=file.workspace_id, agent_ids=agent_ids, cause=None)
    return file


def reach_of(file: ContextFile) -> dict[str, Any]:
    links = FileAgent.objects.in_workspace(file.workspace_id).filter(file=file)
    return {"reach": str(file.reach), "agents": sorted(links.values_list("agent_id", flat=True))}


@transaction.atomic
def require_trust(workspace: Workspace, needed: bool, *, by: Actor) -> None:
    """Whether discovered skills wait until someone has trusted exactly their content."""
    workspace = Workspace.objects.select_for_update().get(pk=workspace.pk)
    if workspace.skills_need_trust == needed:
        return
    workspace.skills_need_trust = needed
    workspace.save(update_fields=["skills_need_trust"])
    state = {"skills_need_trust": needed}
    before = {"skills_need_trust": not needed}
    note_event(
        workspace, "edited", "workspace", workspace.pk, workspace.name, by=by, before=before, after=state
    )
    for source in Source.objects.in_workspace(workspace).order_by("pk"):
        settle_again(hold(source))


def settle_again(source: Source) -> None:
    """Judge all files of a source by the rules as they are now."""
    rows = ContextFile.objects.in_workspace(source.workspace_id).filter(source=source)
    files = list(rows.select_related("newest", "agreed", "in_force"))
    ring_readers(source, settle(files, house_of(source), now=timezone.now()))


def change(file: ContextFile, verb: str, step: Callable[[ContextFile], None], *, by: Actor) -> ContextFile:
    source = hold(file.source)
    file = fresh(file)
    before = facts(file)
    step(file)
    return conclude(source, file, verb, before, None, by=by)


def conclude(
    source: Source,
    file: ContextFile,
    verb: str,
    before: dict[str, Any],
    after: dict[str, Any] | None,
    *,
    by: Actor,
) -> ContextFile:
    """Settle, note who did what, and tell the readers."""
    moved = settle([file], house_of(source), now=timezone.now())
    note_event(
        file.workspace_id,
        verb,
        "file",
        file.pk,
        label_of(file),
        by=by,
        before=before,
        after=facts(file) if after is None else after | facts(file),
    )
    ring_readers(source, moved)
    return file


def fresh(file: ContextFile) -> ContextFile:
    rows = ContextFile.objects.in_workspace(file.workspace_id)
    return rows.select_related("source", "newest", "agreed", "in_force").get(pk=file.pk)


def facts(file: ContextFile) -> dict[str, Any]:
    return {"state": str(file.state), "in_force": file.in_force.digest if file.in_force else None}


def label_of(file: ContextFile) -> str:
    return f"{file.source.slug}/{file.path}"[-254:]


def refuse_unless_seen(file: ContextFile, digest: str) -> None:
    """What someone agrees to is what they looked at, not what came a second later."""
    present = file.newest.digest if file.newest and file.is_there else ""
    if digest != present:
        raise ChangedMeanwhile(
            _("The file has changed since you looked at it. Look again before you decide.")
        )


def refuse_unusable(file: ContextFile) -> None:
    if file.state == FileState.QUARANTINED:
        raise NotAdoptable(_("This revision is in quarantine. Waive its findings first, or mend the file."))
    if file.state == FileState.INVALID:
        raise NotAdoptable(
            (_("This revision cannot be used. %(problem)s") % {"problem": file.problem}).strip()
        )

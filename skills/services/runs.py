"""Looks at a source as rows: asked for once, claimed once, finished or found lost."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, Q, Subquery
from django.utils import timezone

from personas.actors import SYSTEM, Actor
from personas.errors import DomainError
from skills.models import RefreshRun, RunStatus, Source

# A look may take 20 seconds, and storing what it found some more; after that its worker is taken for dead.
LEASE = timedelta(seconds=30)
# Sent but not begun: the broker may have lost it.
PATIENCE = timedelta(seconds=20)


class NotRefreshable(DomainError):
    """A source that is out of use."""

    code = "archived"


@transaction.atomic
def request_refresh(source: Source, *, cause: str, by: Actor) -> RefreshRun:
    """Ask for one more look; whoever asks while one waits gets that one."""
    if source.is_archived:
        raise NotRefreshable("This source is archived. Restore it to refresh it.")
    runs = RefreshRun.objects.in_workspace(source.workspace_id).filter(source=source)
    if waiting := runs.filter(status=RunStatus.QUEUED).first():
        return waiting
    run = RefreshRun(workspace_id=source.workspace_id, source=source, cause=cause, actor_label=by.label)
    try:
        with transaction.atomic():
            run.save(force_insert=True)
    except IntegrityError:
        # Someone else asked in the same moment.
        return runs.get(status=RunStatus.QUEUED)
    return run


def mark_sent(run: RefreshRun) -> None:
    rows = RefreshRun.objects.in_workspace(run.workspace_id)
    rows.filter(pk=run.pk, status=RunStatus.QUEUED).update(sent_at=timezone.now())


def claim_run(workspace_id: int, run_id: int) -> RefreshRun | None:
    """Take a queued run, unless it was taken or another of its source is under way."""
    rows = RefreshRun.objects.in_workspace(workspace_id)
    now = timezone.now()
    try:
        with transaction.atomic():
            taken = rows.filter(pk=run_id, status=RunStatus.QUEUED).update(
                status=RunStatus.RUNNING, started_at=now, leased_until=now + LEASE
            )
    except IntegrityError:
        return None
    return rows.select_related("source__grant", "source__workspace").get(pk=run_id) if taken else None


def note_progress(run: RefreshRun, seen: int, read: int, refused: int) -> None:
    """Let people see how far it is; and the lease goes on, since the worker lives."""
    rows = RefreshRun.objects.in_workspace(run.workspace_id).filter(pk=run.pk, status=RunStatus.RUNNING)
    rows.update(seen=seen, read=read, refused=refused, leased_until=timezone.now() + LEASE)


def next_run(run: RefreshRun) -> RefreshRun | None:
    """What was asked for while this one was under way."""
    rows = RefreshRun.objects.in_workspace(run.workspace_id)
    return rows.filter(source_id=run.source_id, status=RunStatus.QUEUED).first()


def fail_run(run: RefreshRun, reason: str) -> None:
    rows = RefreshRun.objects.in_workspace(run.workspace_id).filter(pk=run.pk, status=RunStatus.RUNNING)
    rows.update(status=RunStatus.FAILED, finished_at=timezone.now(), error=reason[:500])


def requeue_lost_runs(now: datetime) -> list[RefreshRun]:
    """Replace every run whose worker died; the sweep goes over all workspaces, so it says so."""
    lost = RefreshRun.unscoped.filter(status=RunStatus.RUNNING, leased_until__lt=now)
    return [again for run in lost.select_related("source") if (again := requeue(run, now))]


@transaction.atomic
def requeue(run: RefreshRun, now: datetime) -> RefreshRun | None:
    rows = RefreshRun.objects.in_workspace(run.workspace_id)
    still_lost = rows.filter(pk=run.pk, status=RunStatus.RUNNING, leased_until__lt=now)
    if not still_lost.update(status=RunStatus.LOST, finished_at=now, error="Its worker went away."):
        return None
    if run.source.is_archived:
        return None
    return request_refresh(run.source, cause="lost", by=SYSTEM)


def unsent_runs(now: datetime) -> Iterable[RefreshRun]:
    """Queued runs that no worker has begun: never sent, or lost with the broker."""
    waiting = RefreshRun.unscoped.filter(status=RunStatus.QUEUED)
    return waiting.filter(Q(sent_at=None) | Q(sent_at__lt=now - PATIENCE)).order_by("pk")


def request_due_refreshes(now: datetime) -> list[RefreshRun]:
    """One run for every source whose time has come; a failed look waits its turn like a good one."""
    runs = RefreshRun.unscoped.filter(source=OuterRef("pk"))
    sources = (
        Source.unscoped.filter(archived_at=None, source_kind="folder", refresh_minutes__isnull=False)
        .exclude(Exists(runs.filter(status__in=[RunStatus.QUEUED, RunStatus.RUNNING])))
        .annotate(looked_at=Subquery(runs.order_by("-pk").values("finished_at")[:1]))
        .order_by(F("looked_at").asc(nulls_first=True))
    )
    due = [source for source in sources if is_due(source.looked_at, source.refresh_minutes, now)]
    return [request_refresh(source, cause="schedule", by=SYSTEM) for source in due]


def is_due(looked_at: datetime | None, minutes: int | None, now: datetime) -> bool:
    return minutes is not None and (looked_at is None or looked_at + timedelta(minutes=minutes) <= now)

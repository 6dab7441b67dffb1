"""Refresh runs as a job queue in the database: request, claim with a lease, finish, retry and delete."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Case, Exists, F, Min, OuterRef, Q, QuerySet, Subquery, When, Window
from django.db.models.functions import RowNumber
from django.utils import timezone
from django.utils.translation import gettext as _

from core.db.batch_delete import delete_in_batches
from core.db.workspace_scope import all_workspaces
from personas.actors import SYSTEM_ACTOR, Actor
from personas.errors import DomainError
from personas.limits.persons import list_workspaces_of_person
from skills.models import RefreshRun, RunStatus, Source
from skills.sources.selectors import list_refresh_runs

# A worker that has not extended its lease for this time counts as dead. The time must be longer than 20
# seconds, because a scan may run that long without reporting progress.
LEASE_DURATION = timedelta(seconds=30)
# A run that was sent to the broker but has not started within this time is sent again, because the broker
# may have lost it.
START_TIMEOUT = timedelta(seconds=20)
# After this many lost runs in a row there is no automatic retry: the source may crash each worker.
MAX_LOST_RUNS = 3
MAX_REQUEST_ATTEMPTS = 5
WORKER_LOST_MESSAGE = "The worker stopped before the run was finished."
GIVEN_UP_MESSAGE = f" This happened {MAX_LOST_RUNS} times in a row, so the run is not retried automatically."


class SourceArchived(DomainError):
    """The source is archived."""

    code = "archived"


class RefreshConflict(DomainError):
    """Too many concurrent requests for the same source. This is very rare."""

    code = "conflict"


class LostRun(Exception):
    """The run is no longer marked as running, because its lease expired. Its worker discards the result."""


# --- requests ------------------------------------------------------------------------------------------


@transaction.atomic
def request_refresh(source: Source, *, cause: str, by: Actor) -> RefreshRun:
    """Request a refresh. If a run of this source is already queued, that run is returned."""
    if source.is_archived:
        raise SourceArchived(_("This source is archived. Restore it to refresh it."))
    for _try in range(MAX_REQUEST_ATTEMPTS):
        if run := lock_queued_run(source) or create_refresh_run(source, cause, by):
            return run
    raise RefreshConflict(_("Too many refresh requests at once. Try again."))


def lock_queued_run(source: Source) -> RefreshRun | None:
    """Return the queued run of the source and lock its row, or return None.

    No worker can claim the locked run before the caller commits, so the run sees the caller's changes.
    """
    rows = RefreshRun.objects.in_workspace(source.workspace_id)
    return rows.select_for_update(of=("self",)).filter(source=source, status=RunStatus.QUEUED).first()


def create_refresh_run(source: Source, cause: str, by: Actor) -> RefreshRun | None:
    """Create a queued run. Return None if a concurrent request has already created one.

    That other run may have started in the meantime, so the caller has to look for a queued run again.
    """
    run = RefreshRun(workspace_id=source.workspace_id, source=source, cause=cause, actor_label=by.label)
    try:
        with transaction.atomic():
            run.save(force_insert=True)
    except IntegrityError:
        return None
    return run


def mark_run_sent(run: RefreshRun) -> None:
    rows = RefreshRun.objects.in_workspace(run.workspace_id)
    rows.filter(pk=run.pk, status=RunStatus.QUEUED).update(sent_at=timezone.now())


# --- execution -----------------------------------------------------------------------------------------


def claim_run(workspace_id: int, run_id: int) -> RefreshRun | None:
    """Mark a queued run as running, with a lease, and return it.

    Return None if the run is no longer queued, or if another run of its source is running.
    """
    rows = RefreshRun.objects.in_workspace(workspace_id)
    now = timezone.now()
    free = exclude_busy_sources(rows.filter(pk=run_id, status=RunStatus.QUEUED))
    try:
        with transaction.atomic():
            claimed = free.update(status=RunStatus.RUNNING, started_at=now, leased_until=now + LEASE_DURATION)
    except IntegrityError:
        return None
    return (
        rows.select_related("source__allowed_folder", "source__workspace").get(pk=run_id) if claimed else None
    )


def exclude_busy_sources(runs: QuerySet[RefreshRun]) -> QuerySet[RefreshRun]:
    """Exclude runs whose source has a running run."""
    others = RefreshRun.unscoped.filter(
        workspace=OuterRef("workspace"), source=OuterRef("source"), status=RunStatus.RUNNING
    )
    return runs.exclude(Exists(others))


def save_run_progress(run: RefreshRun, seen: int, read: int, refused: int) -> None:
    """Save the progress and extend the lease. Raise LostRun if the run is no longer running."""
    rows = RefreshRun.objects.in_workspace(run.workspace_id).filter(pk=run.pk, status=RunStatus.RUNNING)
    if not rows.update(seen=seen, read=read, refused=refused, leased_until=timezone.now() + LEASE_DURATION):
        raise LostRun


def fail_run(run: RefreshRun, reason: str) -> None:
    rows = RefreshRun.objects.in_workspace(run.workspace_id).filter(pk=run.pk, status=RunStatus.RUNNING)
    rows.update(status=RunStatus.FAILED, finished_at=timezone.now(), error=reason[:500])


@transaction.atomic
def requeue_run(run: RefreshRun, reason: str, *, expired_before: datetime | None = None) -> RefreshRun | None:
    """Mark a running run as lost and request a retry. Return the retry, or None if there is none.

    With `expired_before`, do this only if the lease of the run ended before that time. There is no retry if
    the source is archived or has lost too many runs in a row.
    """
    rows = RefreshRun.objects.in_workspace(run.workspace_id).select_related("source")
    # Skip a locked run: its worker is storing the result.
    rows = rows.select_for_update(of=("self",), skip_locked=True).filter(pk=run.pk, status=RunStatus.RUNNING)
    locked_run = (rows.filter(leased_until__lt=expired_before) if expired_before else rows).first()
    if locked_run is None:
        return None
    locked_run.status, locked_run.finished_at, locked_run.error = RunStatus.LOST, timezone.now(), reason
    is_given_up = has_exhausted_retries(locked_run)
    locked_run.error += GIVEN_UP_MESSAGE if is_given_up else ""
    locked_run.save(update_fields=["status", "finished_at", "error"])
    return None if is_given_up or locked_run.source.is_archived else request_retry(locked_run)


def request_retry(lost_run: RefreshRun) -> RefreshRun:
    """Request a retry of a lost run.

    Refusals that a push stored on the lost run, and the paths whose removal was confirmed, are copied.
    """
    retry = request_refresh(lost_run.source, cause="lost", by=SYSTEM_ACTOR)
    if lost_run.refusals or lost_run.confirmed_paths:
        retry.refusals = [*lost_run.refusals, *retry.refusals]
        retry.confirmed_paths = [*(lost_run.confirmed_paths or ()), *(retry.confirmed_paths or ())]
        retry.save(update_fields=["refusals", "confirmed_paths"])
    return retry


def has_exhausted_retries(lost_run: RefreshRun) -> bool:
    """Return whether this lost run is the last of MAX_LOST_RUNS lost runs in a row."""
    earlier_runs = RefreshRun.objects.in_workspace(lost_run.workspace_id).filter(
        source_id=lost_run.source_id, pk__lt=lost_run.pk
    )
    statuses = list(earlier_runs.order_by("-pk").values_list("status", flat=True)[: MAX_LOST_RUNS - 1])
    return statuses == [RunStatus.LOST] * (MAX_LOST_RUNS - 1)


# --- periodic sweep over all workspaces ----------------------------------------------------------------


def requeue_lost_runs(now: datetime) -> list[RefreshRun]:
    """Retry every run whose lease has expired."""
    lost_runs = RefreshRun.unscoped.filter(status=RunStatus.RUNNING, leased_until__lt=now)
    return [
        retry for run in lost_runs if (retry := requeue_run(run, WORKER_LOST_MESSAGE, expired_before=now))
    ]


def list_unsent_workspaces(now: datetime) -> list[int]:
    """List the workspaces with a run that waits to be sent, longest waiting first."""
    waiting = list_unsent_runs(RefreshRun.unscoped.all(), now).order_by().values("workspace")
    return list(waiting.annotate(first=Min("pk")).order_by("first").values_list("workspace", flat=True))


def list_unsent_runs(runs: QuerySet[RefreshRun], now: datetime) -> QuerySet[RefreshRun]:
    """Filter for queued runs that were not sent to the broker or did not start within START_TIMEOUT.

    Runs that wait for another run of their source are left out.
    """
    queued = exclude_busy_sources(runs.filter(status=RunStatus.QUEUED))
    return queued.filter(Q(sent_at=None) | Q(sent_at__lt=now - START_TIMEOUT))


def list_runs_to_send(workspace_id: int, now: datetime) -> list[RefreshRun]:
    """List the runs to send next, up to the number of jobs that one person may have in the queue.

    Of the workspaces that count for the person, the one with the fewest jobs in the queue is next. Scheduled
    runs come after the others, so that a person's refresh does not wait for a hundred scheduled.
    """
    sent = Q(status=RunStatus.QUEUED, sent_at__gte=now - START_TIMEOUT)
    is_scheduled = Case(When(cause="schedule", then=1), default=0)
    with all_workspaces():
        runs = RefreshRun.unscoped.filter(workspace__in=list_workspaces_of_person(workspace_id))
        active = Counter(runs.filter(sent | Q(status=RunStatus.RUNNING)).values_list("workspace", flat=True))
        free = settings.DRAMATIS_WORKSPACE_JOBS - active.total()
        if free <= 0:
            return []
        unsent = list_unsent_runs(runs, now)
        # Load only the first `free` runs of each workspace, because no more than `free` are sent in total.
        number = Window(RowNumber(), partition_by="workspace", order_by=[is_scheduled, "pk"])
        rows = unsent.annotate(is_scheduled=is_scheduled, number=number).filter(number__lte=free)
        waiting = list(rows.order_by("pk"))
    chosen: list[RefreshRun] = []
    while waiting and len(chosen) < free:
        turn = min(waiting, key=lambda run: (run.is_scheduled, active[run.workspace_id], run.pk))
        waiting.remove(turn)
        active[turn.workspace_id] += 1
        chosen.append(turn)
    return chosen


def request_due_refreshes(now: datetime) -> list[RefreshRun]:
    """Request a run for every folder source whose refresh interval has passed since its last run ended.

    A failed run counts too, so a source with a failed run is not refreshed before the next interval.
    """
    runs = RefreshRun.unscoped.filter(workspace=OuterRef("workspace"), source=OuterRef("pk"))
    sources = (
        Source.unscoped.filter(archived_at=None, source_kind="folder", refresh_minutes__isnull=False)
        .filter(workspace__deleted_at=None)
        .exclude(Exists(runs.filter(status__in=[RunStatus.QUEUED, RunStatus.RUNNING])))
        .annotate(last_finished_at=Subquery(runs.order_by("-pk").values("finished_at")[:1]))
        .order_by(F("last_finished_at").asc(nulls_first=True), "pk")
    )
    due = [
        source for source in sources if is_refresh_due(source.last_finished_at, source.refresh_minutes, now)
    ]
    return [request_refresh(source, cause="schedule", by=SYSTEM_ACTOR) for source in due]


def is_refresh_due(last_finished_at: datetime | None, minutes: int | None, now: datetime) -> bool:
    return minutes is not None and (
        last_finished_at is None or last_finished_at + timedelta(minutes=minutes) <= now
    )


MAX_RUNS_SHOWN = 10


@dataclass(frozen=True)
class RefreshProgress:
    """The latest runs of a source, newest first."""

    runs: tuple[RefreshRun, ...]

    @property
    def current(self) -> RefreshRun | None:
        """The running run, otherwise the queued one."""
        running = [run for run in self.runs if run.status == RunStatus.RUNNING]
        queued = [run for run in self.runs if run.status == RunStatus.QUEUED]
        return next(iter([*running, *queued]), None)

    @property
    def last_finished(self) -> RefreshRun | None:
        return next((run for run in self.runs if not run.is_open), None)

    @property
    def last_change(self) -> RefreshRun | None:
        """The last finished run that changed, held or refused something; the last one if there is none.

        A change of settings often requests a second run, which finds nothing new.
        """
        runs = [run for run in self.runs if not run.is_open]
        return next((run for run in runs if run.outcome or run.error), self.last_finished)

    @property
    def last_finished_pk(self) -> str:
        return str(self.last_finished.pk) if self.last_finished else ""

    @property
    def signature(self) -> str:
        """A value that changes whenever the page would show different runs or different progress."""
        runs = [run for run in (self.current, self.last_finished) if run]
        values = [(run.pk, run.status, run.seen, run.read, run.refused) for run in runs]
        return ".".join(str(value) for row in values for value in row)


def get_refresh_progress(source: Source) -> RefreshProgress:
    return RefreshProgress(tuple(list_refresh_runs(source)[:MAX_RUNS_SHOWN]))


def list_run_refusals(progress: RefreshProgress) -> list[dict[str, str]]:
    """List the refusals of the queued or running run if it has any, otherwise of the last finished run."""
    for run in (progress.current, progress.last_finished):
        # Leave out the refusal that stopped the whole run, because it is already shown as the run's error.
        if refusals := [refusal for refusal in run.refusals if refusal["reason"] != run.error] if run else []:
            return refusals
    return []


# Number of runs that are kept for each source, however old. It must be larger than MAX_RUNS_SHOWN and
# MAX_LOST_RUNS.
MIN_RUNS_KEPT = 20
ENDED_STATUSES = (RunStatus.DONE, RunStatus.HELD, RunStatus.FAILED, RunStatus.LOST)


def delete_runs_before(cutoff: datetime) -> int:
    """Delete runs that ended before the cutoff, except the newest MIN_RUNS_KEPT runs of each source.

    Return the number of deleted runs.
    """
    runs_of_source = RefreshRun.unscoped.filter(workspace=OuterRef("workspace"), source=OuterRef("source"))
    newest = runs_of_source.order_by("-pk").values("pk")
    first_kept = Subquery(newest[MIN_RUNS_KEPT - 1 : MIN_RUNS_KEPT])
    rows = RefreshRun.unscoped.filter(status__in=ENDED_STATUSES, finished_at__lt=cutoff)
    # Ids grow with time, so every run to delete has a lower id than the first run that was requested after
    # the cutoff. With this bound the query does not read later rows.
    recent = RefreshRun.unscoped.filter(requested_at__gte=cutoff).order_by("pk")
    if first_recent := recent.values_list("pk", flat=True).first():
        rows = rows.filter(pk__lt=first_recent)
    return delete_in_batches(rows.annotate(kept_from=first_kept).filter(pk__lt=F("kept_from")))

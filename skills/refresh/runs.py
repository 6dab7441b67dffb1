"""Looks at a source as rows: asked for once, claimed once, finished or found lost."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone
from django.utils.translation import gettext as _

from core.db.batch_delete import delete_in_batches
from personas.actors import SYSTEM_ACTOR, Actor
from personas.errors import DomainError
from skills.models import RefreshRun, RunStatus, Source
from skills.sources.selectors import list_refresh_runs

# A look may take 20 seconds without finding a file; after this long its worker is taken for dead.
LEASE_DURATION = timedelta(seconds=30)
# Sent but not begun: the broker may have lost it.
START_TIMEOUT = timedelta(seconds=20)
# A source that ends its worker each time must not end them all day.
MAX_LOST_RUNS = 3
MAX_REQUEST_ATTEMPTS = 5
WORKER_LOST_MESSAGE = "Its worker went away."
GIVEN_UP_MESSAGE = f" That was the case {MAX_LOST_RUNS} times in a row, so it is not tried again by itself."


class SourceArchived(DomainError):
    """A source that is out of use."""

    code = "archived"


class RefreshConflict(DomainError):
    """So many ask at once that none gets an answer; hardly ever seen."""

    code = "conflict"


class LostRun(Exception):
    """Somebody else took the run over meanwhile; what was found is thrown away."""


# --- asking --------------------------------------------------------------------------------------------


@transaction.atomic
def request_refresh(source: Source, *, cause: str, by: Actor) -> RefreshRun:
    """Ask for one more look; whoever asks while one waits gets that one."""
    if source.is_archived:
        raise SourceArchived(_("This source is archived. Restore it to refresh it."))
    for _try in range(MAX_REQUEST_ATTEMPTS):
        if run := lock_queued_run(source) or create_refresh_run(source, cause, by):
            return run
    raise RefreshConflict(_("Too many ask for this refresh at once. Try again."))


def lock_queued_run(source: Source) -> RefreshRun | None:
    """Held until the caller has committed: a look must not begin before what it should see is there."""
    rows = RefreshRun.objects.in_workspace(source.workspace_id)
    return rows.select_for_update(of=("self",)).filter(source=source, status=RunStatus.QUEUED).first()


def create_refresh_run(source: Source, cause: str, by: Actor) -> RefreshRun | None:
    """None when someone else asked in the same moment; theirs may even have begun since."""
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


# --- carrying out --------------------------------------------------------------------------------------


def claim_run(workspace_id: int, run_id: int) -> RefreshRun | None:
    """Take a queued run, unless it was taken or another of its source is under way."""
    rows = RefreshRun.objects.in_workspace(workspace_id)
    now = timezone.now()
    free = exclude_busy_sources(rows.filter(pk=run_id, status=RunStatus.QUEUED))
    try:
        with transaction.atomic():
            claimed = free.update(status=RunStatus.RUNNING, started_at=now, leased_until=now + LEASE_DURATION)
    except IntegrityError:
        return None
    return rows.select_related("source__grant", "source__workspace").get(pk=run_id) if claimed else None


def exclude_busy_sources(runs: QuerySet[RefreshRun]) -> QuerySet[RefreshRun]:
    """Those whose source nobody looks at just now."""
    others = RefreshRun.unscoped.filter(source=OuterRef("source"), status=RunStatus.RUNNING)
    return runs.exclude(Exists(others))


def save_run_progress(run: RefreshRun, seen: int, read: int, refused: int) -> None:
    """Let people see how far it is; and the lease goes on, since the worker lives."""
    rows = RefreshRun.objects.in_workspace(run.workspace_id).filter(pk=run.pk, status=RunStatus.RUNNING)
    if not rows.update(seen=seen, read=read, refused=refused, leased_until=timezone.now() + LEASE_DURATION):
        raise LostRun


def get_next_run(run: RefreshRun) -> RefreshRun | None:
    """What was asked for while this one was under way."""
    rows = RefreshRun.objects.in_workspace(run.workspace_id)
    return rows.filter(source_id=run.source_id, status=RunStatus.QUEUED).first()


def fail_run(run: RefreshRun, reason: str) -> None:
    rows = RefreshRun.objects.in_workspace(run.workspace_id).filter(pk=run.pk, status=RunStatus.RUNNING)
    rows.update(status=RunStatus.FAILED, finished_at=timezone.now(), error=reason[:500])


@transaction.atomic
def requeue_run(run: RefreshRun, reason: str, *, expired_before: datetime | None = None) -> RefreshRun | None:
    """End a run that came to nothing and ask for another; None when there is nothing to do any more."""
    rows = RefreshRun.objects.in_workspace(run.workspace_id).select_related("source")
    # A run that is locked is being finished at this moment.
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
    """One more look, with what a push had refused before the lost one began."""
    retry = request_refresh(lost_run.source, cause="lost", by=SYSTEM_ACTOR)
    if lost_run.refusals:
        retry.refusals = [*lost_run.refusals, *retry.refusals]
        retry.save(update_fields=["refusals"])
    return retry


def has_exhausted_retries(lost_run: RefreshRun) -> bool:
    """Whether the ones before it were lost as well."""
    earlier_runs = RefreshRun.objects.in_workspace(lost_run.workspace_id).filter(
        source_id=lost_run.source_id, pk__lt=lost_run.pk
    )
    statuses = list(earlier_runs.order_by("-pk").values_list("status", flat=True)[: MAX_LOST_RUNS - 1])
    return statuses == [RunStatus.LOST] * (MAX_LOST_RUNS - 1)


# --- for the sweep, which goes over all workspaces and says so -----------------------------------------


def requeue_lost_runs(now: datetime) -> list[RefreshRun]:
    """Replace every run whose worker died."""
    lost_runs = RefreshRun.unscoped.filter(status=RunStatus.RUNNING, leased_until__lt=now)
    return [
        retry for run in lost_runs if (retry := requeue_run(run, WORKER_LOST_MESSAGE, expired_before=now))
    ]


def list_unsent_runs(now: datetime) -> Iterable[RefreshRun]:
    """Queued runs that no worker has begun: never sent, or lost with the broker."""
    queued = exclude_busy_sources(RefreshRun.unscoped.filter(status=RunStatus.QUEUED))
    return queued.filter(Q(sent_at=None) | Q(sent_at__lt=now - START_TIMEOUT)).order_by("pk")


def request_due_refreshes(now: datetime) -> list[RefreshRun]:
    """One run for every source whose time has come; a failed look waits its turn like a good one."""
    runs = RefreshRun.unscoped.filter(source=OuterRef("pk"))
    sources = (
        Source.unscoped.filter(archived_at=None, source_kind="folder", refresh_minutes__isnull=False)
        .exclude(Exists(runs.filter(status__in=[RunStatus.QUEUED, RunStatus.RUNNING])))
        .annotate(last_finished_at=Subquery(runs.order_by("-pk").values("finished_at")[:1]))
        .order_by(F("last_finished_at").asc(nulls_first=True))
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
    """The latest runs, newest first."""

    runs: tuple[RefreshRun, ...]

    @property
    def current(self) -> RefreshRun | None:
        """What is under way, else what waits."""
        running = [run for run in self.runs if run.status == RunStatus.RUNNING]
        queued = [run for run in self.runs if run.status == RunStatus.QUEUED]
        return next(iter([*running, *queued]), None)

    @property
    def last_finished(self) -> RefreshRun | None:
        return next((run for run in self.runs if not run.is_open), None)

    @property
    def last_finished_pk(self) -> str:
        return str(self.last_finished.pk) if self.last_finished else ""

    @property
    def signature(self) -> str:
        """Differs whenever a page would show something else."""
        runs = [run for run in (self.current, self.last_finished) if run]
        values = [(run.pk, run.status, run.seen, run.read, run.refused) for run in runs]
        return ".".join(str(value) for row in values for value in row)


def get_refresh_progress(source: Source) -> RefreshProgress:
    return RefreshProgress(tuple(list_refresh_runs(source)[:MAX_RUNS_SHOWN]))


def list_run_refusals(progress: RefreshProgress) -> list[dict[str, str]]:
    """What the last finished look left out; a push that waits for its look tells its own first."""
    for run in (progress.current, progress.last_finished):
        # What ended the whole look stands in its error already.
        if refusals := [refusal for refusal in run.refusals if refusal["reason"] != run.error] if run else []:
            return refusals
    return []


# More than any page shows, and than the sweep asks for to see whether a source is hopeless.
MIN_RUNS_KEPT = 20
ENDED_STATUSES = (RunStatus.DONE, RunStatus.FAILED, RunStatus.LOST)


def delete_runs_before(cutoff: datetime) -> int:
    """Runs that had ended by then, but never the newest of a source; how many went."""
    runs_of_source = RefreshRun.unscoped.filter(source=OuterRef("source")).order_by("-pk")
    first_kept = Subquery(runs_of_source.values("pk")[MIN_RUNS_KEPT - 1 : MIN_RUNS_KEPT])
    rows = RefreshRun.unscoped.filter(status__in=ENDED_STATUSES, finished_at__lt=cutoff)
    # Ids grow with time: the first that is young enough spares a look at all that come after it.
    recent = RefreshRun.unscoped.filter(requested_at__gte=cutoff).order_by("pk")
    if first_recent := recent.values_list("pk", flat=True).first():
        rows = rows.filter(pk__lt=first_recent)
    return delete_in_batches(rows.annotate(kept_from=first_kept).filter(pk__lt=F("kept_from")))

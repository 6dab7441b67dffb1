"""Hold a refresh in which most files of a source are missing, until a person confirms the removal.

An unmounted volume looks like a folder without files. A held refresh changes no file: each keeps its status
and its text in prompts. A later refresh that finds the files again ends the hold.
"""

from collections.abc import Iterable

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from personas.actors import SYSTEM_ACTOR, Actor
from personas.audit.services import write_audit_event
from personas.errors import DomainError
from skills.discovery import DiscoveryResult
from skills.models import ContextFile, RefreshRun, RunStatus, Source
from skills.refresh.runs import request_refresh
from skills.sources.locks import lock_source
from skills.sources.selectors import get_source_hold, list_refresh_runs

# Fewer missing files than this are removed without confirmation, unless the root is empty.
MIN_MISSING_FILES = 2


class HoldChanged(DomainError):
    """The source is not held any more, or more files are missing than the person saw."""

    code = "conflict"


def is_mass_removal(present: int, missing: int, *, is_empty: bool) -> bool:
    """Return whether so many of the present files are missing that a person must confirm it.

    That is the case if more than half of the files, and at least two, are missing. If the root is empty, one
    missing file is enough.
    """
    if is_empty:
        return missing > 0
    return missing >= MIN_MISSING_FILES and missing * 2 > present


def find_mass_removal(source: Source, result: DiscoveryResult, run: RefreshRun) -> tuple[list[str], int]:
    """Return the missing paths if they are a mass removal that nobody has confirmed, and the known files.

    Files that a person or an API call removed by name do not count.
    """
    rows = ContextFile.objects.in_workspace(source.workspace_id)
    present = set(rows.filter(source=source, exists=True, is_ignored=False).values_list("path", flat=True))
    missing = result.list_missing_paths(present)
    unconfirmed = set(missing) - set(run.confirmed_paths or ())
    present_count = len(present) - (len(missing) - len(unconfirmed))
    if not is_mass_removal(present_count, len(unconfirmed), is_empty=result.is_empty):
        return [], len(present)
    return missing, len(present)


def hold_run(run: RefreshRun, source: Source, missing: list[str], present: int) -> None:
    """End the run as held. The audit log gets one event for the first of several held runs in a row."""
    is_first = get_source_hold(source) is None
    run.status, run.finished_at = RunStatus.HELD, timezone.now()
    run.missing, run.missing_paths = len(missing), missing
    run.error = (
        f"{len(missing):,} of {present:,} files are missing. Nothing was changed: confirm the removal, or "
        "restore the files and refresh."
    )
    if is_first:
        log_hold_event(source, "held removal", {"missing": len(missing), "run": run.pk}, by=SYSTEM_ACTOR)


def log_ended_hold(source: Source, run: RefreshRun) -> None:
    """Write an audit event if this run, which found the files, ends a hold that nobody confirmed."""
    if not run.confirmed_paths and (hold := get_source_hold(source)):
        log_hold_event(source, "ended hold", {"missing": hold.missing, "run": run.pk}, by=SYSTEM_ACTOR)


@transaction.atomic
def confirm_removal(source: Source, run_id: int, *, by: Actor) -> RefreshRun:
    """Confirm that the missing files of a held run are removed, and request the refresh that removes them.

    `run_id` is the held run that the person saw. The refresh removes only files that are still missing, and
    is held again if other files are missing too.
    """
    source = lock_source(source)
    hold = get_source_hold(source)
    seen = list_refresh_runs(source).defer(None).filter(pk=run_id, status=RunStatus.HELD).first()
    if hold is None or seen is None or not set(hold.missing_paths or ()) <= set(seen.missing_paths or ()):
        raise HoldChanged(
            _(
                "This source was refreshed again, and the list of missing files has "
                "changed. Check the list before you confirm the removal."
            )
        )
    run = request_refresh(source, cause="confirmed", by=by)
    add_confirmed_paths(run, hold.missing_paths or ())
    log_hold_event(source, "confirmed removal", {"missing": hold.missing, "run": hold.pk}, by=by)
    return run


def add_confirmed_paths(run: RefreshRun, paths: Iterable[str]) -> None:
    """Let a queued run remove these files, however many they are."""
    run.confirmed_paths = sorted({*(run.confirmed_paths or ()), *paths})
    run.save(update_fields=["confirmed_paths"])


def log_hold_event(source: Source, action: str, after: dict[str, object], *, by: Actor) -> None:
    write_audit_event(source.workspace_id, action, source.kind, source.pk, str(source), by=by, after=after)

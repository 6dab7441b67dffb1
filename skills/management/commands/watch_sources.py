"""Management command: watch the folders of all sources and request a refresh when a file changes."""

import logging
import time
from collections.abc import Generator, Mapping
from contextlib import closing
from typing import Any, NoReturn

import structlog
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, close_old_connections

from skills.refresh.watch import (
    FileChanges,
    WatchPlan,
    build_watch_plan,
    get_plan_basis,
    list_watched_sources,
    request_refreshes,
)

log = structlog.get_logger(__name__)

# Debouncing: changes within DEBOUNCE_MS are handled as one batch, because saving a file often causes three
# or four events. A batch ends earlier if no change arrives within STEP_MS.
DEBOUNCE_MS, STEP_MS = 200, 50
TICK_MS = 250
# PLAN_CHECK_SECONDS is the interval of checks for new or edited sources, RETRY_SECONDS the pause after an
# error.
PLAN_CHECK_SECONDS, RETRY_SECONDS = 2.0, 2.0


class Command(BaseCommand):
    help = "Watch the folders of all sources and request a refresh run when a file is saved."
    # Django's system checks would delay every start by a second. `dev.py check` runs them instead.
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> NoReturn:
        try:
            import watchfiles  # noqa: F401  # only for a clear message if it is missing
        except ImportError as error:
            raise CommandError("This command requires the package watchfiles.") from error
        # At level INFO, watchfiles logs every change, including changes to files that no source uses.
        logging.getLogger("watchfiles").setLevel(logging.WARNING)
        watcher = SourceWatcher()
        while True:
            watcher.watch_until_plan_changes()


class SourceWatcher:
    """Watches the folders of all sources and requests a refresh of a source when one of its files changes.

    Errors of the file system, database or message broker do not stop it. The scheduled refresh of each source
    finds changes that are missed during an error.
    """

    def __init__(self) -> None:
        self.known: Mapping[int, object] = {}
        # Ids of the sources for which a refresh must still be requested.
        self.pending: set[int] = set()

    def watch_until_plan_changes(self) -> None:
        """Watch until the set of folders to watch changes or an error occurs; the caller then calls again."""
        try:
            plan = build_watch_plan()
            # Refresh new, edited and restored sources: their files may have changed while not being watched.
            self.pending |= {pk for pk, basis in plan.basis.items() if self.known.get(pk) != basis}
            self.known = plan.basis
            self.process_changes(plan)
        except (DatabaseError, OSError, RuntimeError) as error:
            # Possible causes: too many file system watches, a folder that was just removed, or a database
            # restart.
            log.warning("source_watch_interrupted", error=str(error))
            time.sleep(RETRY_SECONDS)
        finally:
            close_old_connections()

    def process_changes(self, plan: WatchPlan) -> None:
        checked_at = time.monotonic()
        with closing(watch_folders(plan.list_folders())) as batches:
            # The watches are active only after the first batch. List the folders again to detect a folder
            # that was created after the plan was made.
            self.request_pending(plan.find_changed_sources(next(batches)))
            if build_watch_plan().list_folders() != plan.list_folders():
                return
            for changes in batches:
                moved = plan.find_moved_sources(changes)
                # If the folders of a source changed, return first, so that the new folders are watched before
                # its refresh is requested. Otherwise a change in between would be missed.
                self.request_pending(plan.find_changed_sources(changes) - moved)
                if moved:
                    self.pending |= moved
                    return
                if time.monotonic() - checked_at > PLAN_CHECK_SECONDS:
                    checked_at = time.monotonic()
                    if get_plan_basis(list_watched_sources()) != plan.basis:
                        return
                    close_old_connections()

    def request_pending(self, touched: set[int]) -> None:
        self.pending |= touched
        if self.pending:
            request_refreshes(self.pending)
            log.info("source_scans_requested", sources=sorted(self.pending))
            self.pending.clear()


def watch_folders(folders: list[str]) -> Generator[FileChanges]:
    """Yield batches of file changes. If nothing changes for TICK_MS, the batch is empty.

    The first batch is yielded only after all folders are being watched.
    """
    from watchfiles import watch

    if not folders:
        while True:
            yield []
            time.sleep(TICK_MS / 1000)
    for batch in watch(
        *folders,
        watch_filter=None,
        debounce=DEBOUNCE_MS,
        step=STEP_MS,
        rust_timeout=TICK_MS,
        yield_on_timeout=True,
        recursive=False,
        ignore_permission_denied=True,
    ):
        yield [(change.name, path) for change, path in batch]  # type: ignore[misc]  # the names of ChangeKind

"""Watches the folders of all sources and asks for a look as soon as a file in one of them is saved."""

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

# Changes within this time count as one; saving a file is often three or four of them.
DEBOUNCE_MS, STEP_MS = 200, 50
TICK_MS = 250
# How soon a new source is noticed, and how long to rest after something failed.
PLAN_CHECK_SECONDS, RETRY_SECONDS = 2.0, 2.0


class Command(BaseCommand):
    help = __doc__
    # Checks cost a second of every start; `dev.py check` runs them.
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> NoReturn:
        try:
            import watchfiles  # noqa: F401  # only to say in words that it is missing
        except ImportError as error:
            raise CommandError("Watching needs the package watchfiles.") from error
        # It tells of every file, also of those that matter to nobody.
        logging.getLogger("watchfiles").setLevel(logging.WARNING)
        watcher = SourceWatcher()
        while True:
            watcher.keep_on()


class SourceWatcher:
    """Goes on whatever happens to folders, database or broker: files are then found by the schedule."""

    def __init__(self) -> None:
        self.known: Mapping[int, object] = {}
        # Sources to be looked at, kept here until someone has been asked.
        self.pending: set[int] = set()

    def keep_on(self) -> None:
        """Watch until the folders to be watched are others."""
        try:
            survey = build_watch_plan()
            # New to us, edited or back again: who knows what changed while nobody watched.
            self.pending |= {pk for pk, basis in survey.basis.items() if self.known.get(pk) != basis}
            self.known = survey.basis
            self.follow(survey)
        except (DatabaseError, OSError, RuntimeError) as error:
            # Too many watches, a folder that went in the same moment, a database that restarts.
            log.warning("source_watch_interrupted", error=str(error))
            time.sleep(RETRY_SECONDS)
        finally:
            close_old_connections()

    def follow(self, survey: WatchPlan) -> None:
        checked = time.monotonic()
        with closing(watch_folders(survey.list_folders())) as batches:
            # Under watch only now: a folder that came while the others were listed would stay unknown.
            self.ask(survey.find_changed_sources(next(batches)))
            if build_watch_plan().list_folders() != survey.list_folders():
                return
            for changes in batches:
                moved = survey.find_moved_sources(changes)
                # Where folders moved, first watch the new ones: then nothing can slip through between.
                self.ask(survey.find_changed_sources(changes) - moved)
                if moved:
                    self.pending |= moved
                    return
                if time.monotonic() - checked > PLAN_CHECK_SECONDS:
                    checked = time.monotonic()
                    if get_plan_basis(list_watched_sources()) != survey.basis:
                        return
                    close_old_connections()

    def ask(self, touched: set[int]) -> None:
        self.pending |= touched
        if self.pending:
            request_refreshes(self.pending)
            log.info("source_scans_requested", sources=sorted(self.pending))
            self.pending.clear()


def watch_folders(folders: list[str]) -> Generator[FileChanges]:
    """Batches of changes; an empty one now and then, the first as soon as all folders are watched."""
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
        yield [(change.name, path) for change, path in batch]  # type: ignore[misc]  # three names, as ours

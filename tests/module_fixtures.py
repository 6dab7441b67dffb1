"""Module-scoped test data: tests roll back rows with a savepoint and restore files from a copy."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from django.core.management import call_command
from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper


@contextmanager
def rows_of_a_module(blocker: Any) -> Iterator[None]:
    """For a module-scoped fixture: rows written inside exist for its tests and are rolled back at the end.

    The fixture yields within it and requests `django_db_blocker`. Tests of such a module do not commit; each
    runs in its own savepoint. A test that changes a row loads it again: objects are not rolled back.
    """
    outer = transaction.atomic()
    # As Django marks its own test transactions: prompts are served in it as in any test.
    outer._from_testcase = True  # type: ignore[attr-defined]
    with blocker.unblock():
        if connection.in_atomic_block:
            raise RuntimeError(
                "A test opened its transaction before this fixture, so its rows would be rolled back with "
                "that test: request the fixture by parameter or usefixtures, not only by getfixturevalue()."
            )
        outer.__enter__()
    try:
        yield
    finally:
        with blocker.unblock():
            transaction.set_rollback(True)
            outer.__exit__(None, None, None)


def put_back(folder: Path, kept: Path) -> None:
    """Restore the folder from its copy `kept`, including file times."""
    shutil.rmtree(folder)
    shutil.copytree(kept, folder, symlinks=True)


@contextmanager
def committed_rows_of_a_module(blocker: Any) -> Iterator[None]:
    """The same for tests that need other connections: rows are committed, and deleted after the last test.

    Such tests must not use the `db` fixtures, which would empty the database after each of them.
    """
    with blocker.unblock():
        try:
            yield
        finally:
            call_command("flush", verbosity=0, interactive=False)


@contextmanager
def commits_heard() -> Iterator[None]:
    """Run on_commit hooks when the outermost atomic block inside ends, although nothing is committed."""
    depth = len(connection.atomic_blocks)
    # Hooks of an outer block are kept for later.
    kept, connection.run_on_commit = connection.run_on_commit, []
    original_exit, original_on_commit = transaction.Atomic.__exit__, BaseDatabaseWrapper.on_commit

    def exit_and_run_hooks(block: Any, *raised: Any) -> None:
        original_exit(block, *raised)
        if len(connection.atomic_blocks) == depth and raised[0] is None:
            connection.run_and_clear_commit_hooks()

    def defer_or_run(wrapper: Any, func: Callable[[], Any], robust: bool = False) -> None:
        original_on_commit(wrapper, func, robust)
        if len(connection.atomic_blocks) == depth:
            connection.run_and_clear_commit_hooks()

    with (
        patch.object(transaction.Atomic, "__exit__", exit_and_run_hooks),
        patch.object(BaseDatabaseWrapper, "on_commit", defer_or_run),
        patch.object(BaseDatabaseWrapper, "validate_no_atomic_block", lambda wrapper: None),
    ):
        try:
            yield
        finally:
            connection.run_on_commit = kept

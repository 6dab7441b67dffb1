"""A stage built once for a module: every test gets its rows back by a savepoint, its files by a copy."""

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
    """For a module's fixture: what is written inside is there for its tests, and gone after the last.

    The fixture yields within it, and asks for `django_db_blocker`. Tests of such a module do not commit. Each
    works in a savepoint of its own; rows that it may change it reads anew, for objects are not rolled back.
    """
    outer = transaction.atomic()
    # As Django marks its own: prompts are handed out in it as in any test.
    outer._from_testcase = True  # type: ignore[attr-defined]
    with blocker.unblock():
        outer.__enter__()
    try:
        yield
    finally:
        with blocker.unblock():
            transaction.set_rollback(True)
            outer.__exit__(None, None, None)


def put_back(folder: Path, kept: Path) -> None:
    """The folder as it was when `kept` was copied from it, to the times of its files."""
    shutil.rmtree(folder)
    shutil.copytree(kept, folder, symlinks=True)


@contextmanager
def committed_rows_of_a_module(blocker: Any) -> Iterator[None]:
    """The same for tests that need other connections: what they write is there until the last has ended.

    Such tests ask for no database themselves, for it would be emptied after each of them.
    """
    with blocker.unblock():
        try:
            yield
        finally:
            call_command("flush", verbosity=0, interactive=False)


@contextmanager
def commits_heard() -> Iterator[None]:
    """What waits for a commit is done when the outermost block inside ends, though nothing is committed."""
    depth = len(connection.atomic_blocks)
    # What waits for the commit of an outer block goes on waiting.
    kept, connection.run_on_commit = connection.run_on_commit, []
    leave, wait = transaction.Atomic.__exit__, BaseDatabaseWrapper.on_commit

    def leave_and_tell(block: Any, *raised: Any) -> None:
        leave(block, *raised)
        if len(connection.atomic_blocks) == depth and raised[0] is None:
            connection.run_and_clear_commit_hooks()

    def wait_or_do(held: Any, func: Callable[[], Any], robust: bool = False) -> None:
        wait(held, func, robust)
        if len(connection.atomic_blocks) == depth:
            connection.run_and_clear_commit_hooks()

    with (
        patch.object(transaction.Atomic, "__exit__", leave_and_tell),
        patch.object(BaseDatabaseWrapper, "on_commit", wait_or_do),
        patch.object(BaseDatabaseWrapper, "validate_no_atomic_block", lambda held: None),
    ):
        try:
            yield
        finally:
            connection.run_on_commit = kept

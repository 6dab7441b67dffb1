"""Commits for tests that make none: what waits for one runs as soon as a verb is through."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any
from unittest.mock import patch

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.transaction import Atomic


@contextmanager
def commits_heard() -> Iterator[None]:
    """Each outermost block that is begun inside ends as with a commit, though nothing is committed.

    What such a block had put off until its commit runs right after it; what is put off outside of any runs at
    once. A block that fails takes back what it put off, as ever.
    """
    connection, leave = connections[DEFAULT_DB_ALIAS], Atomic.__exit__
    outside, put_off = len(connection.savepoint_ids), connection.on_commit

    def is_outside() -> bool:
        return len(connection.savepoint_ids) == outside

    def run_what_waits() -> None:
        while connection.run_on_commit:
            _blocks, wanted, is_robust = connection.run_on_commit.pop(0)
            with suppress(Exception) if is_robust else nullcontext():
                wanted()

    def left(block: Atomic, kind: Any, error: Any, trace: Any) -> None:
        leave(block, kind, error, trace)
        if kind is None and block.using in (None, DEFAULT_DB_ALIAS) and is_outside():
            run_what_waits()

    def heard(wanted: Callable[[], object], robust: bool = False) -> None:
        put_off(wanted, robust)
        if is_outside():
            run_what_waits()

    with patch.object(Atomic, "__exit__", left), patch.object(connection, "on_commit", heard):
        yield

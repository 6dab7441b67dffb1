"""A stage built once for a module: every test gets its rows back by a savepoint, its files by a copy."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import transaction


@contextmanager
def rows_of_a_module(blocker: Any) -> Iterator[None]:
    """For a module's fixture: what is written inside is there for its tests, and gone after the last.

    The fixture yields within it, and asks for `django_db_blocker`. Tests of such a module do not commit. Each
    works in a savepoint of its own; rows that it may change it reads anew, for objects are not rolled back.
    """
    outer = transaction.atomic()
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

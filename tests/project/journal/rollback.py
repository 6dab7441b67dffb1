"""Bring the database back to an earlier state, as the restore of a backup does."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import transaction

from project.journal.apply import AppliedEndings, apply_endings
from project.journal.files import read_journal
from project.journal.services import record_endings


@contextmanager
def rolled_back_and_ended(folder: Path) -> Iterator[Callable[[], AppliedEndings]]:
    """Run the block, record what ended in it, and undo it. The yielded function then applies the journal."""
    start = transaction.savepoint()
    yield lambda: apply_journal(folder)
    record_endings()
    transaction.savepoint_rollback(start)


def apply_journal(folder: Path) -> AppliedEndings:
    journal = read_journal(folder)
    assert journal is not None
    return apply_endings(journal.endings)

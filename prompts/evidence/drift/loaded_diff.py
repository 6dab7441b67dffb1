"""The diff of a served and a loaded text for a page. Of the loaded text only line numbers are stored."""

from collections.abc import Iterator
from itertools import islice

from django.utils.translation import gettext as _

from core.text.diff import DiffLine, DiffSpan
from prompts.evidence.drift.details import ChangedBlock, LineChanges

# At most this many changed lines of a block are shown, by number only: the loaded text is not stored.
MAX_SHOWN_LINES = 50


def build_loaded_diff(served: str, changes: LineChanges) -> list[DiffLine]:
    """Return the lines of the served text and, where they differ, numbered lines without their text."""
    return list(iterate_diff_lines(served.split("\n"), changes))


def iterate_diff_lines(served: list[str], changes: LineChanges) -> Iterator[DiffLine]:
    at, offset = 1, 0
    for block in changes.blocks:
        yield from iterate_same_lines(served, at, block.served_line, offset)
        yield from iterate_changed_lines(served, block)
        at = block.served_line + block.served_line_count
        offset = block.line + block.line_count - at
    # If some blocks are not stored, the line numbers after the last stored block are unknown.
    if not changes.more:
        yield from iterate_same_lines(served, at, len(served) + 1, offset)


def iterate_same_lines(served: list[str], first: int, end: int, offset: int) -> Iterator[DiffLine]:
    for number, line in enumerate(served[first - 1 : end - 1], start=first):
        yield DiffLine("same", (DiffSpan(line),), number, number + offset)


def iterate_changed_lines(served: list[str], block: ChangedBlock) -> Iterator[DiffLine]:
    first, end = block.served_line, block.served_line + block.served_line_count
    for number, line in enumerate(served[first - 1 : end - 1], start=first):
        yield DiffLine("removed", (DiffSpan(line),), before=number)
    not_stored = DiffSpan(_("(The loaded text is not stored.)"))
    for number in islice(range(block.line, block.line + block.line_count), MAX_SHOWN_LINES):
        yield DiffLine("added", (not_stored,), after=number)

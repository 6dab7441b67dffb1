"""Keyset pagination of rows by time, newest first: every page costs the same."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from django.db.models import Model, Q, QuerySet

M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class KeysetPage(Generic[M]):
    """Rows, and the cursor of the next page; None on the last page."""

    rows: list[M]
    next_cursor: int | None


def get_keyset_page(
    rows: QuerySet[M], *, before: int | None, cursor_rows: QuerySet[M], limit: int
) -> KeysetPage[M]:
    """Return the page after the row with the id `before`, which is looked up in `cursor_rows`.

    `rows` must be ordered by `-at` and `-pk`.
    """
    if before is not None:
        rows = rows.filter(build_older_than_filter(cursor_rows, before))
    page = list(rows[: limit + 1])
    return KeysetPage(page[:limit], page[limit - 1].pk if len(page) > limit else None)


def build_older_than_filter(rows: QuerySet[M], row_id: int) -> Q:
    """Build the condition for the rows that follow this one in newest-first order."""
    at = rows.filter(pk=row_id).values_list("at", flat=True).first()
    if at is None:
        # The row expired between two pages: any rows left after it have smaller ids.
        return Q(pk__lt=row_id)
    # The first condition is implied by the second, but it is the one that can use an index.
    return Q(at__lte=at) & (Q(at__lt=at) | Q(pk__lt=row_id))

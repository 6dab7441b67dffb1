"""Keyset pagination of rows by time, newest first: later pages are as fast as the first one."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from django.db.models import Model, Q, QuerySet

M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class KeysetPage(Generic[M]):
    """A page of rows. `next_cursor` is the id of its last row, or None if this is the last page."""

    rows: list[M]
    next_cursor: int | None


def get_keyset_page(
    rows: QuerySet[M], *, before: int | None, cursor_rows: QuerySet[M], limit: int
) -> KeysetPage[M]:
    """Return the next page: the rows older than the row with the id `before`.

    That row is looked up in `cursor_rows`, because a filter may exclude it from `rows`. `rows` must be
    ordered by `-at` and `-pk`.
    """
    if before is not None:
        rows = rows.filter(build_older_than_filter(cursor_rows, before))
    page = list(rows[: limit + 1])
    return KeysetPage(page[:limit], page[limit - 1].pk if len(page) > limit else None)


def build_older_than_filter(rows: QuerySet[M], row_id: int) -> Q:
    """Build the condition for the rows that follow the row `row_id` in newest-first order."""
    at = rows.filter(pk=row_id).values_list("at", flat=True).first()
    if at is None:
        # The row was deleted since the previous page, so its time is unknown. Older rows have smaller ids.
        return Q(pk__lt=row_id)
    # The first condition follows from the second and is there for the index, which cannot be used for an OR.
    return Q(at__lte=at) & (Q(at__lt=at) | Q(pk__lt=row_id))

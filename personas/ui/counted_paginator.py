"""Paginator that gets the number of rows as an argument, which saves its COUNT query."""

from collections.abc import Sequence
from typing import Any

from django.core.paginator import Paginator
from django.db.models import QuerySet


class CountedPaginator(Paginator[Any]):
    """Paginate rows whose total number the caller already knows, for example from a GROUP BY query."""

    def __init__(self, rows: "QuerySet[Any, Any] | Sequence[Any]", per_page: int, total: int) -> None:
        super().__init__(rows, per_page)
        self.total = total

    @property
    def count(self) -> int:
        return self.total

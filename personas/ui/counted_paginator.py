"""Paginator with a known total, which saves the COUNT query."""

from collections.abc import Sequence
from typing import Any

from django.core.paginator import Paginator
from django.db.models import QuerySet


class CountedPaginator(Paginator[Any]):
    """Paginate rows whose number was counted by another query."""

    def __init__(self, rows: "QuerySet[Any, Any] | Sequence[Any]", per_page: int, total: int) -> None:
        super().__init__(rows, per_page)
        self.total = total

    @property
    def count(self) -> int:
        return self.total

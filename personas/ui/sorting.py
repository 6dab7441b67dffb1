"""Sort order of lists: read from the query string, shown in the column headers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from django.db.models import F, Model, OrderBy, QuerySet
from django.http import HttpRequest

M = TypeVar("M", bound=Model)
# Maps each value of the `sort` query parameter (without “-”) to the model fields to sort by.
SortFields = Mapping[str, Sequence[str]]
# Sort orders that most lists have.
USAGE_SORTS: dict[str, Sequence[str]] = {"agents": ("agent_count",), "changed": ("updated_at",)}
NAMED_RECORD_SORTS: dict[str, Sequence[str]] = {"name": ("name",), **USAGE_SORTS}


@dataclass(frozen=True)
class SortOrder:
    """The column and direction by which a list is sorted. An empty name keeps the queryset's own order."""

    name: str = ""
    is_descending: bool = False

    @property
    def param(self) -> str:
        """The value of the `sort` query parameter."""
        return f"-{self.name}" if self.is_descending else self.name


def get_sort_order(request: HttpRequest, sorts: SortFields, default: str = "") -> SortOrder:
    """Return the sort order from the query string, or the default order if the column is unknown."""
    requested = request.GET.get("sort", "")
    param = requested if requested.removeprefix("-") in sorts else default
    return SortOrder(param.removeprefix("-"), param.startswith("-"))


def sort_rows(rows: QuerySet[M], sorting: SortOrder, sorts: SortFields) -> QuerySet[M]:
    """Sort the rows with nulls last in both directions.

    Rows with equal values are sorted by primary key. Without this, a row could appear on two pages.
    """
    if sorting.name not in sorts:
        return rows
    fields = [build_order_by(field, is_descending=sorting.is_descending) for field in sorts[sorting.name]]
    return rows.order_by(*fields, "-pk" if sorting.is_descending else "pk")


def build_order_by(field: str, *, is_descending: bool) -> OrderBy:
    return F(field).desc(nulls_last=True) if is_descending else F(field).asc(nulls_last=True)

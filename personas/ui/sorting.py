"""In which order a list stands: said in the address, shown in the heads of its columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from django.db.models import F, Model, OrderBy, QuerySet
from django.http import HttpRequest

M = TypeVar("M", bound=Model)
# The name in the address, and the fields that give the order.
SortFields = Mapping[str, Sequence[str]]
# What most lists offer.
USAGE_SORTS: dict[str, Sequence[str]] = {"agents": ("agent_count",), "changed": ("updated_at",)}
NAMED_RECORD_SORTS: dict[str, Sequence[str]] = {"label": ("label",), **USAGE_SORTS}


@dataclass(frozen=True)
class SortOrder:
    """A column and a direction; no column means the list's own order."""

    name: str = ""
    is_descending: bool = False

    @property
    def param(self) -> str:
        """As it stands in the address."""
        return f"-{self.name}" if self.is_descending else self.name


def get_sort_order(request: HttpRequest, sorts: SortFields, default: str = "") -> SortOrder:
    """What the address asks for, or the usual order; unknown columns are as if unsaid."""
    requested = request.GET.get("sort", "")
    param = requested if requested.removeprefix("-") in sorts else default
    return SortOrder(param.removeprefix("-"), param.startswith("-"))


def sort_rows(rows: QuerySet[M], sorting: SortOrder, sorts: SortFields) -> QuerySet[M]:
    """Rows without a value come last either way; equal ones keep one order, or pages would overlap."""
    if sorting.name not in sorts:
        return rows
    fields = [build_order_by(field, is_descending=sorting.is_descending) for field in sorts[sorting.name]]
    return rows.order_by(*fields, "-pk" if sorting.is_descending else "pk")


def build_order_by(field: str, *, is_descending: bool) -> OrderBy:
    return F(field).desc(nulls_last=True) if is_descending else F(field).asc(nulls_last=True)

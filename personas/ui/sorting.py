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
    is_down: bool = False

    @property
    def word(self) -> str:
        """As it stands in the address."""
        return f"-{self.name}" if self.is_down else self.name


def get_sort_order(request: HttpRequest, sorts: SortFields, usual: str = "") -> SortOrder:
    """What the address asks for, or the usual order; unknown columns are as if unsaid."""
    said = request.GET.get("sort", "")
    known = said if said.removeprefix("-") in sorts else usual
    return SortOrder(known.removeprefix("-"), known.startswith("-"))


def sort_rows(rows: QuerySet[M], sorting: SortOrder, sorts: SortFields) -> QuerySet[M]:
    """Rows without a value come last either way; equal ones keep one order, or pages would overlap."""
    if sorting.name not in sorts:
        return rows
    fields = [build_order_by(field, is_down=sorting.is_down) for field in sorts[sorting.name]]
    return rows.order_by(*fields, "-pk" if sorting.is_down else "pk")


def build_order_by(field: str, *, is_down: bool) -> OrderBy:
    return F(field).desc(nulls_last=True) if is_down else F(field).asc(nulls_last=True)

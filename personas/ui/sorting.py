"""In which order a list stands: said in the address, shown in the heads of its columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from django.db.models import F, Model, OrderBy, QuerySet
from django.http import HttpRequest

M = TypeVar("M", bound=Model)
# The name in the address, and the fields that give the order.
Sorts = Mapping[str, Sequence[str]]
# What most lists offer.
USED_SORTS: dict[str, Sequence[str]] = {"agents": ("agent_count",), "changed": ("updated_at",)}
NAMED_SORTS: dict[str, Sequence[str]] = {"label": ("label",), **USED_SORTS}


@dataclass(frozen=True)
class Sorting:
    """A column and a direction; no column means the list's own order."""

    name: str = ""
    is_down: bool = False

    @property
    def word(self) -> str:
        """As it stands in the address."""
        return f"-{self.name}" if self.is_down else self.name


def sorting_asked(request: HttpRequest, sorts: Sorts, usual: str = "") -> Sorting:
    """What the address asks for, or the usual order; unknown columns are as if unsaid."""
    said = request.GET.get("sort", "")
    known = said if said.removeprefix("-") in sorts else usual
    return Sorting(known.removeprefix("-"), known.startswith("-"))


def in_order(rows: QuerySet[M], sorting: Sorting, sorts: Sorts) -> QuerySet[M]:
    """Rows without a value come last either way; equal ones keep one order, or pages would overlap."""
    if sorting.name not in sorts:
        return rows
    fields = [directed(field, is_down=sorting.is_down) for field in sorts[sorting.name]]
    return rows.order_by(*fields, "-pk" if sorting.is_down else "pk")


def directed(field: str, *, is_down: bool) -> OrderBy:
    return F(field).desc(nulls_last=True) if is_down else F(field).asc(nulls_last=True)

"""What stands on the memory board: three columns, each a page of what was asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Count, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import QueryDict

from personas.models import Memory, MemoryState, Workspace
from personas.selectors import list_memories

COLUMN_PAGE_SIZE = 50
BOARD_STATES = (MemoryState.PROPOSED, MemoryState.ACTIVE, MemoryState.SUPERSEDED)
# How the author of a bot's words is named.
BOT_LABEL_PREFIX = "bot:"


@dataclass(frozen=True)
class MemoryFilter:
    """What somebody looks for; what is left empty is not asked about."""

    words: str = ""
    # An agent's id, or `shared` for what everyone knows.
    agent: str = ""
    # `people` or `bots`.
    told_by: str = ""
    source: str = ""

    def narrow(self, rows: QuerySet[Memory]) -> QuerySet[Memory]:
        if self.words:
            rows = rows.filter(Q(text__icontains=self.words) | Q(source__icontains=self.words))
        if self.agent:
            rows = rows.filter(agent=None if self.agent == "shared" else int(self.agent))
        if self.told_by:
            bots = Q(author_label__startswith=BOT_LABEL_PREFIX)
            rows = rows.filter(bots if self.told_by == "bots" else ~bots)
        return rows.filter(source=self.source) if self.source else rows


def parse_memory_filter(params: QueryDict) -> MemoryFilter:
    """What an address asks for; strange values are as if unsaid."""
    values = {
        name: params.get(name, "").replace("\x00", "").strip() for name in ("q", "agent", "told_by", "source")
    }
    agent = values["agent"]
    is_id = agent.isascii() and agent.isdecimal() and len(agent) < 16
    return MemoryFilter(
        words=values["q"][:200],
        agent=agent if is_id or agent == "shared" else "",
        told_by=values["told_by"] if values["told_by"] in {"people", "bots"} else "",
        source=values["source"][:300],
    )


class PrecountedPaginator(Paginator):  # type: ignore[type-arg]  # generic only in the stubs
    """Pages of rows that have been counted already."""

    def __init__(self, rows: QuerySet[Memory, Any], total: int) -> None:
        super().__init__(rows, COLUMN_PAGE_SIZE)
        self.total = total

    @cached_property
    def count(self) -> int:
        return self.total


@dataclass(frozen=True)
class BoardColumn:
    """One column of the board."""

    state: MemoryState
    page: "Page[Any]"
    memories: list[Memory]

    @property
    def count(self) -> int:
        return self.page.paginator.count


def list_board_columns(
    workspace: Workspace, filters: MemoryFilter, counts: Mapping[str, int], pages: Mapping[str, str]
) -> list[BoardColumn]:
    """The columns, one query each; `pages` tells which page of each is looked at."""
    columns = []
    for state in BOARD_STATES:
        rows = filters.narrow(Memory.objects.in_workspace(workspace)).filter(state=state)
        ids = rows.order_by("-created_at", "-pk").values("pk")
        page = PrecountedPaginator(ids, counts.get(state, 0)).get_page(pages.get(state))
        # Ids first, within the same query: whole rows are then sorted by the fifty and not by the thousand.
        memories = list_board_memories(workspace).filter(pk__in=page.object_list)
        columns.append(BoardColumn(state, page, list(memories) if page.paginator.count else []))
    return columns


def count_memories_by_state(workspace: Workspace, filters: MemoryFilter) -> dict[str, int]:
    rows = filters.narrow(Memory.objects.in_workspace(workspace))
    return dict(rows.order_by().values_list("state").annotate(count=Count("pk")))


def list_board_memories(workspace: Workspace) -> QuerySet[Memory]:
    """With how many others each has taken the place of."""
    rows = Memory.objects.in_workspace(workspace).filter(superseded_by=OuterRef("pk"))
    replaced = rows.order_by().values("superseded_by")
    count = Subquery(replaced.annotate(count=Count("pk")).values("count"), output_field=IntegerField())
    return list_memories(workspace).annotate(replaces=Coalesce(count, 0))

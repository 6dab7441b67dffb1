"""Queries of the memory board: filters, and one paginated column per status."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page
from django.db.models import Count, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import QueryDict

from personas.models import Memory, MemoryStatus, Workspace
from personas.selectors import list_memories
from personas.ui.counted_paginator import CountedPaginator

COLUMN_PAGE_SIZE = 50
BOARD_STATUSES = (MemoryStatus.PROPOSED, MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED)
# Prefix of `author_label` for memories written by bots.
BOT_LABEL_PREFIX = "bot:"


@dataclass(frozen=True)
class MemoryFilter:
    """Filters of the memory list and board. An empty field means that this filter is not set."""

    query: str = ""
    # An agent's id, or `shared` for memories without an agent.
    agent: str = ""
    # Who wrote the memory: `people` or `bots`.
    author_kind: str = ""
    source: str = ""

    def filter_rows(self, rows: QuerySet[Memory]) -> QuerySet[Memory]:
        if self.query:
            rows = rows.filter(Q(text__icontains=self.query) | Q(source__icontains=self.query))
        if self.agent:
            rows = rows.filter(agent=None if self.agent == "shared" else int(self.agent))
        if self.author_kind:
            bots = Q(author_label__startswith=BOT_LABEL_PREFIX)
            rows = rows.filter(bots if self.author_kind == "bots" else ~bots)
        return rows.filter(source=self.source) if self.source else rows


def parse_memory_filter(params: QueryDict) -> MemoryFilter:
    """Read the filters from the query string. A filter with an invalid value is not set."""
    values = {
        name: params.get(name, "").replace("\x00", "").strip() for name in ("q", "agent", "told_by", "source")
    }
    agent = values["agent"]
    is_id = agent.isascii() and agent.isdecimal() and len(agent) < 16
    return MemoryFilter(
        query=values["q"][:200],
        agent=agent if is_id or agent == "shared" else "",
        author_kind=values["told_by"] if values["told_by"] in {"people", "bots"} else "",
        source=values["source"][:300],
    )


@dataclass(frozen=True)
class BoardColumn:
    """One column of the board: a page of the memories with one status."""

    status: MemoryStatus
    page: "Page[Any]"
    memories: list[Memory]

    @property
    def count(self) -> int:
        return self.page.paginator.count


def list_board_columns(
    workspace: Workspace, filters: MemoryFilter, counts: Mapping[str, int], pages: Mapping[str, str]
) -> list[BoardColumn]:
    """Load one page of each column, with one query per column.

    `counts` maps each status to its number of memories, `pages` to the requested page number.
    """
    columns = []
    for status in BOARD_STATUSES:
        rows = filters.filter_rows(Memory.objects.in_workspace(workspace)).filter(status=status)
        ids = rows.order_by("-created_at", "-pk").values("pk")
        page = CountedPaginator(ids, COLUMN_PAGE_SIZE, counts.get(status, 0)).get_page(pages.get(status))
        # Deferred join: the subquery sorts and limits only ids, so that complete rows are read only for
        # the memories of this page.
        memories = list_board_memories(workspace).filter(pk__in=page.object_list)
        columns.append(BoardColumn(status, page, list(memories) if page.paginator.count else []))
    return columns


def count_memories_by_status(workspace: Workspace, filters: MemoryFilter) -> dict[str, int]:
    rows = filters.filter_rows(Memory.objects.in_workspace(workspace))
    return dict(rows.order_by().values_list("status").annotate(count=Count("pk")))


def list_board_memories(workspace: Workspace) -> QuerySet[Memory]:
    """Return all memories, each annotated with the number of memories that it supersedes."""
    rows = Memory.objects.in_workspace(workspace).filter(superseded_by=OuterRef("pk"))
    replaced = rows.order_by().values("superseded_by")
    count = Subquery(replaced.annotate(count=Count("pk")).values("count"), output_field=IntegerField())
    return list_memories(workspace).annotate(replaces=Coalesce(count, 0))

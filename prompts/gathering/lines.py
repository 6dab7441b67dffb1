"""Responsibilities and memories of some agents: lines of text that belong to agents, read in one question."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeVar

from django.db.models import CharField, DateTimeField, IntegerField, Q, QuerySet, Value

from personas.models import Memory, MemoryState, Record, Responsibility, Workspace

R = TypeVar("R", bound=Record)
SHARED = ("id", "workspace_id", "revision", "agent_id", "text")
OF_MEMORY, OF_DUTY = ("valid_from", "valid_until"), ("title", "position")
COLUMNS = (*SHARED, *OF_MEMORY, *OF_DUTY)


def lines_of(workspace: Workspace | int, agents: Sequence[int]) -> tuple[list[Responsibility], list[Memory]]:
    """Responsibilities in the order of their agents; memories, also shared ones, the oldest first.

    A stable order keeps the text, and so the version, unchanged.
    """
    rows = list(memory_rows(workspace, agents).union(duty_rows(workspace, agents), all=True))
    duties = rows_of(Responsibility, rows, {*SHARED, *OF_DUTY})
    memories = rows_of(Memory, rows, {*SHARED, *OF_MEMORY})
    duties.sort(key=lambda row: (row.position, row.id))
    memories.sort(key=lambda row: row.id)
    return duties, memories


def memory_rows(workspace: Workspace | int, agents: Sequence[int]) -> "QuerySet[Memory, Any]":
    rows = Memory.objects.in_workspace(workspace).filter(archived_at=None, state=MemoryState.ACTIVE)
    rows = rows.filter(Q(agent=None) | Q(agent__in=agents)).order_by()
    return rows.annotate(
        its_kind=Value(Memory.kind, CharField()),
        title=Value("", CharField()),
        position=Value(0, IntegerField()),
    ).values_list("its_kind", *COLUMNS)


def duty_rows(workspace: Workspace | int, agents: Sequence[int]) -> "QuerySet[Responsibility, Any]":
    rows = Responsibility.objects.in_workspace(workspace).filter(agent__in=agents, archived_at=None)
    return (
        rows.order_by()
        .annotate(
            its_kind=Value(Responsibility.kind, CharField()),
            valid_from=Value(None, DateTimeField()),
            valid_until=Value(None, DateTimeField()),
        )
        .values_list("its_kind", *COLUMNS)
    )


def rows_of(model: type[R], rows: Iterable[Sequence[Any]], names: Collection[str]) -> list[R]:
    """With what prompts are made of; the rest would be asked for when it is looked at."""
    order = [field.attname for field in model._meta.concrete_fields if field.attname in names]
    places = [1 + COLUMNS.index(name) for name in order]
    return [
        model.from_db(None, order, [row[place] for place in places]) for row in rows if row[0] == model.kind
    ]

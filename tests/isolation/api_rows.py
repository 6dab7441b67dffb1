"""Row type of the API table: how an operation is called."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from tests.isolation.cast import KINDS, Stage

RowValue = Callable[[Stage, str], str]
Body = Callable[[Stage, str], Any]


@dataclass(frozen=True)
class Row:
    """How to call an operation; the expected status follows from the operation."""

    # URL parameters that name rows, and those that do not.
    names: Mapping[str, RowValue] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    body: Body | None = None
    query: Body | None = None
    # Whether an allowed call must change rows: the positive control.
    changes: bool = True
    # Status for a key that is limited to one agent; 0: the same as for other keys.
    narrow: int = 0
    # Status for such a key and another agent, or a key limited to some channels and another channel: serving
    # checks the scope before it looks up agent and channel.
    beyond: int = 404
    # Status for bots that have the permission: some lists contain only their own rows.
    bots: int = 0
    # Statuses of callers that the operation itself rejects, by caller name.
    others: Mapping[str, int] = field(default_factory=dict)
    if_match: str = "*"


def row(kind: str, attribute: str = "", variant: str = "plain") -> RowValue:
    """The URL value of a seeded row."""
    name = attribute or (KINDS[kind][1] if kind in KINDS else "pk")
    return lambda stage, home: str(attrgetter(name)(stage.row(home, kind, variant)))


def constant(value: Any) -> Body:
    return lambda stage, home: value

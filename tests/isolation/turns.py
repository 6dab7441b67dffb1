"""Which addresses a run meets: of those that are one piece of code for many kinds of record, one in turn.

Whose turn it is says the run's seed (pytest-randomly); the long proofs meet all of them.
"""

import random
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
ALIKE = (
    "identities",
    "souls",
    "user-profiles",
    "channels",
    "tools",
    "memories",
    "responsibilities",
    "tasks",
)
# They have more to them than the others, and so meet each other's turn only.
RICHER = ("agents", "skills")
PAGES = {"list", "detail", "new", "edit", "history", "revision", "revert", "archive", "restore", "bulk"}
# As many as it takes until everybody has had their turn at a place; then it is the next kind's.
ROUND = 24
TURNS = ROUND * len(ALIKE)
OPERATIONS = {"list", "one", "revisions", "go-back", "restore"}


def turn_of_this_run() -> int:
    return random.randrange(TURNS)  # noqa: S311  # the seed stands in the head of the run


def pages_in_turn(routes: Iterable[T], turn: int, name: Callable[[T], str]) -> list[T]:
    """Every page of its own, and the common ones of two kinds: `souls:edit` stands for `tools:edit`."""
    return [one for one in routes if is_due(*name(one).partition(":")[::2], PAGES, turn)]


def operations_in_turn(doors: Iterable[T], turn: int, name: Callable[[T], str]) -> list[T]:
    """The same for the API, where names are like `souls-go-back`."""
    return [one for one in doors if is_due(*split(name(one)), OPERATIONS, turn)]


def split(name: str) -> tuple[str, str]:
    kind = next((kind for kind in (*ALIKE, *RICHER) if name.startswith(f"{kind}-")), "")
    return kind, name.removeprefix(f"{kind}-")


def is_due(kind: str, place: str, common: set[str], turn: int) -> bool:
    number = turn // ROUND
    return place not in common or kind in {ALIKE[number], RICHER[number % 2]} or kind not in {*ALIKE, *RICHER}

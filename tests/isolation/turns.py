"""Rotation of routes: of the kinds of record that share their code, each run tests one.

The seed of the run (pytest-randomly) selects it; tests marked `hard` cover all of them.
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
# These differ more from the others, so they rotate only with each other.
RICHER = ("agents", "skills")
PAGES = {"list", "detail", "new", "edit", "history", "revision", "revert", "archive", "restore", "bulk"}
# Turns after which every requester has tested every route of a kind; then the next kind follows.
ROUND = 24
TURNS = ROUND * len(ALIKE)
OPERATIONS = {"list", "one", "revisions", "restore-revision", "restore"}


def turn_of_this_run() -> int:
    return random.randrange(TURNS)  # noqa: S311  # the header of the run shows the seed


def pages_in_turn(routes: Iterable[T], turn: int, name: Callable[[T], str]) -> list[T]:
    """All specific pages, and the common pages of two kinds: `souls:edit` represents `tools:edit`."""
    return [one for one in routes if is_due(*name(one).partition(":")[::2], PAGES, turn)]


def operations_in_turn(endpoints: Iterable[T], turn: int, name: Callable[[T], str]) -> list[T]:
    """The same for API operations, with names such as `souls-restore-revision`."""
    return [one for one in endpoints if is_due(*split(name(one)), OPERATIONS, turn)]


def split(name: str) -> tuple[str, str]:
    kind = next((kind for kind in (*ALIKE, *RICHER) if name.startswith(f"{kind}-")), "")
    return kind, name.removeprefix(f"{kind}-")


def is_due(kind: str, place: str, common: set[str], turn: int) -> bool:
    number = turn // ROUND
    return place not in common or kind in {ALIKE[number], RICHER[number % 2]} or kind not in {*ALIKE, *RICHER}

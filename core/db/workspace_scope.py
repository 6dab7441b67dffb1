"""How far the database lets this call look: into one workspace, into all of them or, as requests begin, none.

Queries name their workspace anyway; this is the second wall, for the query that forgets to. It stands where
the product's database role is held by row security (docs/decisions/0014-second-wall.md).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# What the policies of the tables read.
SETTING = "dramatis.workspace"
EVERYWHERE, NOWHERE = "all", ""

# Jobs and commands are the house's own; a request begins with nothing.
_sight: ContextVar[str] = ContextVar("sight", default=EVERYWHERE)


def sight() -> str:
    """The id of a workspace, or one of the two words."""
    return _sight.get()


def enter(workspace_id: int) -> None:
    """A gate has let the request in: from here to its end it sees this workspace."""
    _sight.set(said(workspace_id))


def enter_everywhere() -> None:
    """The back office looks into all workspaces, to the end of the request."""
    _sight.set(EVERYWHERE)


@contextmanager
def within(workspace_id: int) -> Iterator[None]:
    with looking(said(workspace_id)):
        yield


@contextmanager
def everywhere() -> Iterator[None]:
    """For the few questions that are asked before there is a workspace, or about all of them."""
    with looking(EVERYWHERE):
        yield


@contextmanager
def nowhere() -> Iterator[None]:
    with looking(NOWHERE):
        yield


@contextmanager
def looking(far: str) -> Iterator[None]:
    before = _sight.set(far)
    try:
        yield
    finally:
        _sight.reset(before)


def said(workspace_id: int) -> str:
    """Digits and nothing else: it becomes part of a statement."""
    return str(int(workspace_id))

"""How far the database lets this call look: into one workspace, into all of them or, as requests begin, none.

Queries name their workspace anyway; this is the second wall, for the query that forgets to. It stands where
the product's database role is held by row security (docs/decisions/0014-row-level-security.md).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# What the policies of the tables read.
SCOPE_SETTING = "dramatis.workspace"
ALL_WORKSPACES, NO_WORKSPACE = "all", ""

# Jobs and commands are the house's own; a request begins with nothing.
_current_scope: ContextVar[str] = ContextVar("sight", default=ALL_WORKSPACES)


def current_scope() -> str:
    """The id of a workspace, or one of the two words."""
    return _current_scope.get()


def enter_workspace(workspace_id: int) -> None:
    """A gate has let the request in: from here to its end it sees this workspace."""
    _current_scope.set(format_workspace_id(workspace_id))


def enter_all_workspaces() -> None:
    """The back office looks into all workspaces, to the end of the request."""
    _current_scope.set(ALL_WORKSPACES)


@contextmanager
def workspace_scope(workspace_id: int) -> Iterator[None]:
    with use_scope(format_workspace_id(workspace_id)):
        yield


@contextmanager
def all_workspaces() -> Iterator[None]:
    """For the few questions that are asked before there is a workspace, or about all of them."""
    with use_scope(ALL_WORKSPACES):
        yield


@contextmanager
def no_workspace() -> Iterator[None]:
    with use_scope(NO_WORKSPACE):
        yield


@contextmanager
def use_scope(far: str) -> Iterator[None]:
    before = _current_scope.set(far)
    try:
        yield
    finally:
        _current_scope.reset(before)


def format_workspace_id(workspace_id: int) -> str:
    """Digits and nothing else: it becomes part of a statement."""
    return str(int(workspace_id))

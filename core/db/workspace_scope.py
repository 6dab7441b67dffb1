"""The workspace scope of row-level security: one workspace, all of them, or none (at the start of a request).

Every query should filter by workspace. Row-level security is the second line of defence, for a query that
does not. It takes effect only if it restricts the database role (docs/decisions/0014-row-level-security.md).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# The PostgreSQL setting with the current scope, which the row-level security policies read.
SCOPE_SETTING = "dramatis.workspace"
ALL_WORKSPACES, NO_WORKSPACE = "all", ""

# The default is for jobs and commands. RowLevelSecurityMiddleware starts every request with NO_WORKSPACE.
_current_scope: ContextVar[str] = ContextVar("workspace_scope", default=ALL_WORKSPACES)


def current_scope() -> str:
    """Return the id of a workspace, ALL_WORKSPACES or NO_WORKSPACE."""
    return _current_scope.get()


def get_scope_id() -> int | None:
    """Return the id of the workspace, or None if the scope is not a single workspace."""
    scope = _current_scope.get()
    return int(scope) if scope.isdigit() else None


def enter_workspace(workspace_id: int) -> None:
    """Set the scope to this workspace until the end of the request. The caller must have checked access."""
    _current_scope.set(format_workspace_id(workspace_id))


def enter_all_workspaces() -> None:
    """Set the scope to all workspaces until the end of the request (the admin site)."""
    _current_scope.set(ALL_WORKSPACES)


@contextmanager
def workspace_scope(workspace_id: int) -> Iterator[None]:
    with use_scope(format_workspace_id(workspace_id)):
        yield


@contextmanager
def all_workspaces() -> Iterator[None]:
    """Set the scope to all workspaces, for queries before the workspace is known or across workspaces."""
    with use_scope(ALL_WORKSPACES):
        yield


@contextmanager
def no_workspace() -> Iterator[None]:
    with use_scope(NO_WORKSPACE):
        yield


@contextmanager
def use_scope(scope: str) -> Iterator[None]:
    token = _current_scope.set(scope)
    try:
        yield
    finally:
        _current_scope.reset(token)


def format_workspace_id(workspace_id: int) -> str:
    """Return the id as text. int() ensures that it has digits only, because it becomes part of SQL."""
    return str(int(workspace_id))

"""PostgreSQL database backend whose cursors set the workspace scope of row-level security."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db.backends.postgresql import base
from django.db.backends.postgresql.psycopg_any import register_tzloader
from psycopg.pq import Format

from project.database.postgresql.rls_cursor import (
    ScopedCursor,
    ScopedServerCursor,
    can_set_scope,
    detect_restricted_role,
    get_scope_statement,
)

# Any, because the type stubs of Django do not declare this class.
PipelineCursor: Any = base.ServerBindingCursor


class DatabaseWrapper(base.DatabaseWrapper):
    def get_connection_params(self) -> dict[str, Any]:
        return {**super().get_connection_params(), "cursor_factory": ScopedCursor}

    def init_connection_state(self) -> None:
        super().init_connection_state()
        detect_restricted_role(self.connection)

    def create_cursor(self, name: str | None = None) -> Any:
        if not name:
            return super().create_cursor(name)
        raw = self.connection
        cursor = ScopedServerCursor(raw, name=name, scrollable=False, withhold=raw.autocommit)
        if self.timezone != raw.adapters.get_loader(base.TIMESTAMPTZ_OID, Format.TEXT).timezone:
            register_tzloader(self.timezone, cursor)
        return cursor

    @contextmanager
    def open_pipeline(self) -> Iterator[Callable[[], Any]]:
        """Send statements without waiting for their results. Yield the function that creates a cursor.

        Only in a transaction: the first statement sets the workspace scope for the others. Results can be
        read after the block.
        """
        self.ensure_connection()
        raw = self.connection
        with self.wrap_database_errors, raw.pipeline():
            if can_set_scope(raw):
                PipelineCursor(raw).execute(get_scope_statement())
            yield lambda: PipelineCursor(raw)

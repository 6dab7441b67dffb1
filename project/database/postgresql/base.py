"""PostgreSQL database backend whose cursors set the workspace scope of row-level security."""

from typing import Any

from django.db.backends.postgresql import base
from django.db.backends.postgresql.psycopg_any import register_tzloader
from psycopg.pq import Format

from project.database.postgresql.rls_cursor import ScopedCursor, ScopedServerCursor, detect_restricted_role


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

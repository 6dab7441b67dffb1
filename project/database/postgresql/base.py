"""PostgreSQL database backend: workspace scope for row-level security, pipelines, savepoints sent lazily."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db.backends.postgresql import base
from django.db.backends.postgresql.psycopg_any import register_tzloader
from psycopg import ClientCursor
from psycopg.errors import FeatureNotSupported
from psycopg.pq import Format, TransactionStatus

from project.database.config import DIRECT_KEY
from project.database.postgresql.features import DatabaseFeatures
from project.database.postgresql.pipeline import StatementPipeline
from project.database.postgresql.rls_cursor import (
    ScopedCursor,
    ScopedServerCursor,
    can_set_scope,
    detect_restricted_role,
    find_unsent_scope,
    forget_sent_scope,
    is_outside_transaction,
    needs_separate_scope,
)
from project.database.postgresql.schema import WorkspaceSchemaEditor

# Any, because the type stubs of Django do not declare the methods for savepoints.
DjangoWrapper: Any = base.DatabaseWrapper


class DatabaseWrapper(DjangoWrapper):  # type: ignore[misc]  # see above
    SchemaEditorClass = WorkspaceSchemaEditor
    features_class = DatabaseFeatures
    # SAVEPOINT and RELEASE statements to be sent before the next statement. If that is a pipeline, they are
    # sent in the same round trip. Those left at the end of the transaction are not needed.
    unsent: list[str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.unsent = []

    def get_connection_params(self) -> dict[str, Any]:
        return {**super().get_connection_params(), "cursor_factory": ScopedCursor}

    def connect(self) -> None:
        self.unsent = []
        super().connect()

    def init_connection_state(self) -> None:
        super().init_connection_state()
        forget_sent_scope(self.connection)
        detect_restricted_role(self.connection)

    def create_cursor(self, name: str | None = None) -> Any:
        if not name:
            plain: Any = super().create_cursor(name)
            plain.before_execute = self.send_savepoints
            return plain
        raw = self.connection
        cursor: Any = ScopedServerCursor(raw, name=name, scrollable=False, withhold=raw.autocommit)
        cursor.before_execute = self.send_savepoints
        if self.timezone != raw.adapters.get_loader(base.TIMESTAMPTZ_OID, Format.TEXT).timezone:
            register_tzloader(self.timezone, cursor)
        return cursor

    def chunked_cursor(self) -> Any:
        """Return a server-side cursor. Outside of a transaction, a pooler would lose it between two chunks.

        It then gets a direct connection of its own, which is closed with it.
        """
        direct = self.settings_dict.get(DIRECT_KEY)
        if direct is None or not self.get_autocommit():
            return super().chunked_cursor()
        wrapper = type(self)({**self.settings_dict, DIRECT_KEY: None, **direct}, alias=f"{self.alias}_direct")
        # Another thread may close a streamed response, and with it this connection.
        wrapper.inc_thread_sharing()
        cursor = wrapper.chunked_cursor()
        cursor.cursor.after_close = wrapper.close
        return cursor

    # --- savepoints ---------------------------------------------------------------------------------

    def _savepoint(self, sid: str) -> None:
        self.unsent.append(self.ops.savepoint_create_sql(sid))

    def _savepoint_commit(self, sid: str) -> None:
        if self.unsent and self.unsent[-1] == self.ops.savepoint_create_sql(sid):
            self.unsent.pop()
        else:
            self.unsent.append(self.ops.savepoint_commit_sql(sid))
            # PostgreSQL keeps a scope that was set since the savepoint, but Citus does not pass it on to
            # workers that join the transaction later. So the scope must be sent again.
            forget_sent_scope(self.connection)

    def _savepoint_rollback(self, sid: str) -> None:
        statement = self.ops.savepoint_create_sql(sid)
        if statement in self.unsent:
            # Nothing was sent since the savepoint.
            del self.unsent[self.unsent.index(statement) + 1 :]
            return
        # All unsent statements concern savepoints within this one.
        self.unsent.clear()
        super()._savepoint_rollback(sid)
        forget_sent_scope(self.connection)

    def _commit(self) -> Any:
        self.unsent.clear()
        forget_sent_scope(self.connection)
        return super()._commit()

    def _rollback(self) -> Any:
        self.unsent.clear()
        forget_sent_scope(self.connection)
        return super()._rollback()

    def _set_autocommit(self, autocommit: bool) -> None:
        # A transaction begins or ends here.
        super()._set_autocommit(autocommit)
        forget_sent_scope(self.connection)

    def send_savepoints(self) -> None:
        """Send SAVEPOINT and RELEASE statements. A failed transaction accepts only ROLLBACK."""
        if not self.unsent:
            return
        unsent, self.unsent = self.unsent, []
        if self.connection.info.transaction_status != TransactionStatus.INERROR:
            ClientCursor(self.connection).execute("; ".join(unsent))

    # --- pipelines ----------------------------------------------------------------------------------

    @contextmanager
    def open_pipeline(self) -> Iterator[Callable[[], Any]]:
        """Send the statements of the block together at its end. Yield the function that creates a cursor.

        The first statement sets the workspace scope for the others. Outside of a transaction they get one of
        their own: the server runs a pipeline in one, and for the scope it is begun and committed in the same
        round trip. Results can be read after the block. Statements that are sent often are prepared on the
        server. If the block fails, nothing is sent.
        """
        self.ensure_connection()
        raw = self.connection
        with self.wrap_database_errors, closed_on_stale_plan(raw):
            pipeline = StatementPipeline(raw)
            yield pipeline.create_cursor
            unsent, self.unsent = self.unsent, []
            is_outside = is_outside_transaction(raw)
            if is_outside:
                forget_sent_scope(raw)
            scope = find_unsent_scope(raw) if can_set_scope(raw) else None
            if not is_outside:
                pipeline.send([*unsent, *([scope] if scope else [])])
                return
            with rolled_back_on_error(raw):
                pipeline.send(["BEGIN", scope] if scope else [], ["COMMIT"] if scope else [])

    @property
    def can_pipeline_reads(self) -> bool:
        """Whether statements that read are sent together outside of a transaction. Not tried with Citus."""
        self.ensure_connection()
        return not needs_separate_scope(self.connection)


@contextmanager
def closed_on_stale_plan(raw: Any) -> Iterator[None]:
    """Close the connection if a prepared statement does not fit its table any more, after a migration.

    The statement would fail on this connection for good. On a new one it is prepared again.
    """
    try:
        yield
    except FeatureNotSupported:
        raw.close()
        raise


@contextmanager
def rolled_back_on_error(raw: Any) -> Iterator[None]:
    """Roll back a transaction that was begun in a pipeline, and that a failed statement left open."""
    try:
        yield
    except BaseException:
        if not raw.closed:
            raw.rollback()
        raise

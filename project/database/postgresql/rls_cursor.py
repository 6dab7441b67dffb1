"""Cursors for row-level security: if the role is restricted, each statement is sent with the workspace scope.

The scope is set with SET LOCAL, so it ends with the transaction, and a connection that returns to the pool
has no scope. A rollback may undo SET LOCAL, but that does no harm, because every statement sets the scope
again.

Citus passes SET LOCAL on to the workers with the whole text of the query that contains it. There it is a
query of its own in a transaction, and is sent again only if the scope has changed.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg.pq import TransactionStatus

from core.db.workspace_scope import SCOPE_SETTING, current_scope

RawConnection = psycopg.Connection[Any]
# Returns whether row-level security restricts the current role (not a superuser, no BYPASSRLS, not the owner
# of the tables), and whether the database has Citus. Returns no row if there are no tables yet.
RESTRICTED_ROLE_SQL = """
SELECT NOT (r.rolsuper OR r.rolbypassrls OR pg_has_role(r.oid, t.relowner, 'USAGE')),
EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus')
FROM pg_roles r, pg_class t WHERE r.rolname = current_user AND t.oid = to_regclass('personas_workspace')
"""
# Names of connection attributes. The last, only used with Citus, is the scope sent in the transaction.
RESTRICTED_ATTRIBUTE, CITUS_ATTRIBUTE, SENT_SCOPE_ATTRIBUTE = "is_rls_restricted", "has_citus", "sent_scope"
# Any, because the type stubs of Django do not declare these classes.
DjangoCursor: Any = base.Cursor
DjangoServerSideCursor: Any = base.ServerSideCursor


def is_connection_restricted(raw: RawConnection) -> bool:
    return bool(getattr(raw, RESTRICTED_ATTRIBUTE, False))


def detect_restricted_role(raw: RawConnection) -> None:
    """Store on the connection whether its role is restricted by row-level security, and whether it has Citus.

    The database is queried once per connection; as long as there are no tables, it is queried each time.
    """
    if getattr(raw, RESTRICTED_ATTRIBUTE, None) is None:
        row = psycopg.ClientCursor(raw).execute(RESTRICTED_ROLE_SQL).fetchone()
        is_restricted, has_citus = row or (None, False)
        setattr(raw, RESTRICTED_ATTRIBUTE, is_restricted)
        setattr(raw, CITUS_ATTRIBUTE, has_citus)


def can_set_scope(raw: RawConnection) -> bool:
    """Return whether the scope must be set, and can be: a failed transaction accepts only ROLLBACK."""
    return is_connection_restricted(raw) and raw.info.transaction_status != TransactionStatus.INERROR


def get_scope_statement() -> str:
    return f"SET LOCAL {SCOPE_SETTING} = '{current_scope()}'"


def needs_separate_scope(raw: RawConnection) -> bool:
    """Return whether SET LOCAL must be a query of its own."""
    return bool(getattr(raw, CITUS_ATTRIBUTE, False))


def find_unsent_scope(raw: RawConnection) -> str | None:
    """Return the statement that sets the scope; None if the transaction has this scope already.

    Only with Citus: it keeps every SET LOCAL, and sends all of them to each worker that joins the
    transaction.
    """
    if needs_separate_scope(raw):
        if getattr(raw, SENT_SCOPE_ATTRIBUTE, None) == current_scope():
            return None
        setattr(raw, SENT_SCOPE_ATTRIBUTE, current_scope())
    return get_scope_statement()


def forget_sent_scope(raw: RawConnection | None) -> None:
    """Set the scope again before the next statement: the transaction, or a part of it, has ended."""
    if raw is not None:
        setattr(raw, SENT_SCOPE_ATTRIBUTE, None)


@contextmanager
def set_scope_separately(raw: RawConnection) -> Iterator[None]:
    """Set the scope with a separate statement. Outside of a transaction, run the block in one.

    A scope of the session would be wrong behind a pooler, which shares sessions between clients.
    """
    if raw.info.transaction_status == TransactionStatus.IDLE:
        forget_sent_scope(raw)
    with raw.transaction() if is_outside_transaction(raw) else nullcontext():
        if statement := find_unsent_scope(raw):
            psycopg.ClientCursor(raw).execute(statement)
        yield


def is_outside_transaction(raw: RawConnection) -> bool:
    return raw.autocommit and raw.info.transaction_status == TransactionStatus.IDLE


class BeforeExecute:
    """Calls a function of the database wrapper before each statement, which sends savepoints."""

    def before_execute(self) -> None:
        """Set by the wrapper for each cursor."""


class ScopedCursor(BeforeExecute, DjangoCursor):  # type: ignore[misc]  # see above
    """Cursor that sends SET LOCAL and the statement together, in one round trip and one transaction.

    With Citus it sends them one after the other.
    """

    def execute(self, query: Any, params: Any = None, **more: Any) -> "ScopedCursor":
        self.before_execute()
        if not can_set_scope(self.connection):
            super().execute(query, params, **more)
            return self
        if needs_separate_scope(self.connection):
            with set_scope_separately(self.connection):
                super().execute(query, params, **more)
            return self
        statement = query if isinstance(query, str) else query.as_string(self)
        super().execute(f"{get_scope_statement()}; {statement}", params, **more)
        # Skip the result of SET LOCAL.
        self.nextset()
        return self

    def executemany(self, query: Any, params_seq: Any, **more: Any) -> None:
        self.before_execute()
        if not can_set_scope(self.connection):
            super().executemany(query, params_seq, **more)
            return
        with set_scope_separately(self.connection):
            super().executemany(query, params_seq, **more)

    def copy(self, *args: Any, **kwargs: Any) -> Any:
        self.before_execute()
        return super().copy(*args, **kwargs)


class ScopedServerCursor(BeforeExecute, DjangoServerSideCursor):  # type: ignore[misc]  # see above
    """Server-side cursor that sets the scope with a separate statement.

    The query becomes part of a DECLARE CURSOR statement, so SET LOCAL cannot be sent with it.
    """

    def after_close(self) -> None:
        """Set by the wrapper if the cursor has a connection of its own."""

    def close(self) -> None:
        try:
            super().close()
        finally:
            self.after_close()

    def execute(self, query: Any, params: Any = None, **more: Any) -> "ScopedServerCursor":
        self.before_execute()
        if not can_set_scope(self.connection):
            super().execute(query, params, **more)
            return self
        with set_scope_separately(self.connection):
            super().execute(query, params, **more)
        return self

"""The telling: if the connection's role is held by row security, each statement is sent with its sight.

The telling lasts for one transaction and no longer, be it that of a single statement: a connection that goes
back to the pool carries nothing. Rollbacks, savepoints and whoever had it before change nothing either, since
no statement relies on what an earlier one has said.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg.pq import TransactionStatus

from core.db.workspace_scope import SCOPE_SETTING, current_scope

RawConnection = psycopg.Connection[Any]
# Neither all-powerful nor the tables' owner; no answer while there are no tables yet.
RESTRICTED_ROLE_SQL = """
SELECT NOT (r.rolsuper OR r.rolbypassrls OR pg_has_role(r.oid, t.relowner, 'USAGE'))
FROM pg_roles r, pg_class t WHERE r.rolname = current_user AND t.oid = to_regclass('personas_workspace')
"""
RESTRICTED_ATTRIBUTE = "is_walled"
RESET_SCOPE_SQL = f"RESET {SCOPE_SETTING}"
# Whoever types Django knows nothing of these.
DjangoCursor: Any = base.Cursor
DjangoServerSideCursor: Any = base.ServerSideCursor


def is_connection_restricted(raw: RawConnection) -> bool:
    return bool(getattr(raw, RESTRICTED_ATTRIBUTE, False))


def detect_restricted_role(raw: RawConnection) -> None:
    """Once per connection; until there are tables, each time anew."""
    if getattr(raw, RESTRICTED_ATTRIBUTE, None) is None:
        found = psycopg.ClientCursor(raw).execute(RESTRICTED_ROLE_SQL).fetchone()
        setattr(raw, RESTRICTED_ATTRIBUTE, found[0] if found else None)


def can_set_scope(raw: RawConnection) -> bool:
    """After an error a transaction listens to nothing but its end."""
    return is_connection_restricted(raw) and raw.info.transaction_status != TransactionStatus.INERROR


@contextmanager
def set_scope_separately(raw: RawConnection) -> Iterator[None]:
    """For what cannot be sent together with it; outside of a transaction it is taken back at once."""
    plain = psycopg.ClientCursor(raw)
    if not raw.autocommit or raw.info.transaction_status == TransactionStatus.INTRANS:
        plain.execute(f"SET LOCAL {SCOPE_SETTING} = '{current_scope()}'")
        yield
        return
    plain.execute(f"SET {SCOPE_SETTING} = '{current_scope()}'")
    try:
        yield
    finally:
        try:
            plain.execute(RESET_SCOPE_SQL)
        except psycopg.Error:
            # What may still carry a workspace is given to nobody.
            raw.close()
            raise


class ScopedCursor(DjangoCursor):  # type: ignore[misc]  # see above
    """Sends the telling and the statement as one: a single way there and back, a single transaction."""

    def execute(self, query: Any, params: Any = None, **more: Any) -> "ScopedCursor":
        if not can_set_scope(self.connection):
            super().execute(query, params, **more)
            return self
        words = query if isinstance(query, str) else query.as_string(self)
        super().execute(f"SET LOCAL {SCOPE_SETTING} = '{current_scope()}'; {words}", params, **more)
        # The first answer is to the telling.
        self.nextset()
        return self

    def executemany(self, query: Any, params_seq: Any, **more: Any) -> None:
        if not can_set_scope(self.connection):
            super().executemany(query, params_seq, **more)
            return
        with set_scope_separately(self.connection):
            super().executemany(query, params_seq, **more)


class ScopedServerCursor(DjangoServerSideCursor):  # type: ignore[misc]  # see above
    """Is declared by a message that takes one statement only."""

    def execute(self, query: Any, params: Any = None, **more: Any) -> "ScopedServerCursor":
        if not can_set_scope(self.connection):
            super().execute(query, params, **more)
            return self
        with set_scope_separately(self.connection):
            super().execute(query, params, **more)
        return self

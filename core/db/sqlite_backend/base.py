"""SQLite database backend whose transactions wait for the write lock in short steps."""

from typing import Any

from django.db.backends.sqlite3 import base

from core.db.sqlite_backend.write_lock import begin_immediate

# Any, because the type stubs of Django do not declare the methods for transactions.
DjangoWrapper: Any = base.DatabaseWrapper


class DatabaseWrapper(DjangoWrapper):  # type: ignore[misc]  # see above
    def _start_transaction_under_autocommit(self) -> None:
        if self.transaction_mode != "IMMEDIATE":
            super()._start_transaction_under_autocommit()
            return
        self.ensure_connection()
        with self.wrap_database_errors:
            begin_immediate(
                self.connection, self.settings_dict["NAME"], self.settings_dict["OPTIONS"]["timeout"]
            )

"""SQLite database backend: transactions wait for the write lock in short steps, connections are kept open."""

import os
from typing import Any

from django.db.backends.sqlite3 import base

from core.db.sqlite_backend.write_lock import begin_immediate

# Any, because the type stubs of Django do not declare the methods for transactions.
DjangoWrapper: Any = base.DatabaseWrapper
# Device and inode of a file.
FileId = tuple[int, int]


class DatabaseWrapper(DjangoWrapper):  # type: ignore[misc]  # see above
    # The file that the connection has open. None for a database in memory.
    file_id: FileId | None = None

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        # Before the file is opened: if it is replaced in between, the next request opens the new file.
        self.file_id = self.find_file_id()
        return super().get_new_connection(conn_params)

    def close_if_unusable_or_obsolete(self) -> None:
        """Close the connection at the start and end of a request if the file was replaced or removed.

        A connection would otherwise read and write the old file.
        """
        if self.connection is not None and not self.in_atomic_block and self.find_file_id() != self.file_id:
            self.close()
        super().close_if_unusable_or_obsolete()

    def find_file_id(self) -> FileId | None:
        try:
            found = os.stat(self.settings_dict["NAME"])
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _start_transaction_under_autocommit(self) -> None:
        if self.transaction_mode != "IMMEDIATE":
            super()._start_transaction_under_autocommit()
            return
        self.ensure_connection()
        with self.wrap_database_errors:
            begin_immediate(
                self.connection, self.settings_dict["NAME"], self.settings_dict["OPTIONS"]["timeout"]
            )

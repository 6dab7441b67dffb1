"""Prepared statements of a connection: which exist on the server, under which names.

psycopg numbers them per connection. Behind a pooler that shares server connections, a name could then be that
of another client's statement. A name from a digest always means the same statement.
"""

from collections import OrderedDict
from hashlib import sha256
from typing import Any

# SQL with the server's placeholders, such as $1, and the types of the parameters.
StatementKey = tuple[bytes, tuple[int, ...]]
# How many statements a connection keeps on the server, and for how many others it counts executions.
MAX_PREPARED = 100
ATTRIBUTE = "prepared_statements"


class PreparedStatements:
    """Statements of a connection that are prepared, and how often the others were executed.

    With the threshold None nothing is prepared.
    """

    def __init__(self, threshold: int | None) -> None:
        self.threshold = threshold
        self.counts: OrderedDict[StatementKey, int] = OrderedDict()
        self.names: OrderedDict[StatementKey, bytes] = OrderedDict()

    def find_name(self, key: StatementKey) -> bytes | None:
        """Return the name of a statement that is prepared on the server."""
        name = self.names.get(key)
        if name is not None:
            self.names.move_to_end(key)
        return name

    def count_execution(self, key: StatementKey) -> bool:
        """Count an execution. Return whether the statement is to be prepared for it."""
        if self.threshold is None:
            return False
        count = self.counts.get(key, 0)
        if count >= self.threshold:
            return True
        self.counts[key] = count + 1
        self.counts.move_to_end(key)
        if len(self.counts) > MAX_PREPARED:
            self.counts.popitem(last=False)
        return False

    def add(self, key: StatementKey, name: bytes) -> None:
        """Add a statement that the server has prepared."""
        self.counts.pop(key, None)
        self.names[key] = name

    def take_surplus(self) -> list[bytes]:
        """Remove the statements that were not used for the longest time, and return their names."""
        surplus = max(len(self.names) - MAX_PREPARED, 0)
        return [self.names.popitem(last=False)[1] for _ in range(surplus)]


def get_prepared_statements(raw: Any) -> PreparedStatements:
    """Return the prepared statements of a psycopg connection, which keeps them while it is in a pool."""
    statements: PreparedStatements | None = getattr(raw, ATTRIBUTE, None)
    if statements is None:
        statements = PreparedStatements(raw.prepare_threshold)
        setattr(raw, ATTRIBUTE, statements)
    return statements


def build_name(sql: bytes, types: tuple[int, ...]) -> bytes:
    return b"q_" + sha256(sql + b"\0" + repr(types).encode()).hexdigest()[:32].encode()

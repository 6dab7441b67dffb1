"""Names of prepared statements.

psycopg numbers them per connection. Behind a pooler that shares server connections, a name could then be that
of another client's statement. A name from a digest always means the same statement.
"""

from hashlib import sha256
from typing import Any

from psycopg._preparing import Prepare, PrepareManager


class DigestNames(PrepareManager):
    """Names a prepared statement by the digest of its SQL and the types of its parameters."""

    def get(self, query: Any, prepare: bool | None = None) -> tuple[Prepare, bytes]:
        state, name = super().get(query, prepare)
        return state, build_name(query.query, query.types) if state is Prepare.SHOULD else name


def build_name(sql: bytes, types: tuple[int, ...]) -> bytes:
    return b"q_" + sha256(sql + b"\0" + repr(types).encode()).hexdigest()[:32].encode()


def name_by_digest(raw: Any) -> None:
    """Let the connection name its prepared statements by digests. It must not have prepared any."""
    if not isinstance(raw._prepared, DigestNames):
        names = DigestNames()
        names.prepare_threshold = raw._prepared.prepare_threshold
        raw._prepared = names

"""Fast statements: SQL that is compiled once, and several statements in one round trip.

They are harder to read than querysets and `save()`, so use them only where a benchmark shows a gain, and
write the reason beside them. docs/decisions/0021-compiled-queries.md explains the mechanism and lists its
uses, docs/decisions/0024-faster-writes-and-pages.md has the gain of each step.

Import from here. The modules are:

- compiled_query: a function that returns a queryset becomes one that returns a list
- compiled_write: WriteBatch, inserts and updates that are sent together
- pipeline: the round trip itself, in libpq's pipeline mode on PostgreSQL
"""

from core.db.fast.compiled_query import BoundQuery, CompiledQueries, CompiledQuery, fetch_together
from core.db.fast.compiled_write import WriteBatch, build_key_query, can_insert_rows
from core.db.fast.pipeline import Rows, Statement, execute_together

__all__ = [
    "BoundQuery",
    "CompiledQueries",
    "CompiledQuery",
    "Rows",
    "Statement",
    "WriteBatch",
    "build_key_query",
    "can_insert_rows",
    "execute_together",
    "fetch_together",
]

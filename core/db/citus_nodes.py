"""Citus, which distributes tables over nodes: whether a database has it, and which nodes answer."""

from typing import Any

from django.db import DatabaseError, connection

CITUS_SQL = "SELECT 1 FROM pg_extension WHERE extname = 'citus'"
# Only active workers: one that was disabled on purpose does not count as lost.
NODES_SQL = """
SELECT nodename, nodeport FROM pg_dist_node
WHERE isactive AND groupid <> 0 AND noderole = 'primary' ORDER BY 1, 2
"""
# Opens a connection to the worker, to find out whether it answers.
NODE_STATE_SQL = "SELECT citus_check_connection_to_node(%s, %s)"


def has_citus() -> bool:
    """Return whether the database has Citus. The backend finds out once per connection."""
    if connection.vendor != "postgresql":
        return False
    connection.ensure_connection()
    return bool(getattr(connection.connection, "has_citus", False))


def list_node_states() -> dict[str, bool]:
    """Return by address whether a worker answers; an empty dictionary without Citus."""
    if connection.vendor != "postgresql" or not query(CITUS_SQL):
        return {}
    return {f"{name}:{port}": is_node_up(name, port) for name, port in query(NODES_SQL)}


def list_lost_nodes() -> list[str]:
    """Return the addresses of workers that do not answer."""
    return [node for node, is_up in list_node_states().items() if not is_up]


def is_node_up(name: str, port: int) -> bool:
    try:
        return bool(query(NODE_STATE_SQL, [name, port])[0][0])
    except DatabaseError:
        # The worker's machine does not answer at all, so the statement was cancelled by its time limit.
        if connection.in_atomic_block:
            raise
        return False


def query(sql: str, values: Any = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows

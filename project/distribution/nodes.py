"""State of the nodes of Citus: which of them the coordinator can reach."""

from project.distribution.catalog import CITUS_VERSION_SQL, query_rows

# Opens a connection to every worker. A worker that was removed on purpose is not active.
NODE_STATES_SQL = """
SELECT nodename || ':' || nodeport, citus_check_connection_to_node(nodename, nodeport)
FROM pg_dist_node WHERE isactive AND groupid <> 0 AND noderole = 'primary' ORDER BY 1
"""


def list_node_states() -> dict[str, bool]:
    """Return by address whether a worker answers; an empty dictionary without Citus."""
    return dict(query_rows(NODE_STATES_SQL)) if query_rows(CITUS_VERSION_SQL) else {}

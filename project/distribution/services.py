"""Carry out the plan of `distribute` in one transaction, and count what each node has."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from django.db import connection, transaction

from personas.tenancy.lost_nodes import WORKSPACE_NODES_SQL
from project.distribution.catalog import Catalog, query_rows, read_catalog
from project.distribution.fetch_function import build_fetch_function
from project.distribution.plan import Step, build_plan, quote_name
from prompts.serving.ledger_insert import FETCH_FUNCTION, STORED_COLUMNS

Reporter = Callable[[str], None]
TRANSACTION_SETTINGS = (
    "SET LOCAL statement_timeout = 0",
    "SET LOCAL idle_in_transaction_session_timeout = 0",
    "SET LOCAL lock_timeout = '10s'",
)
SHARDS_SQL = """
SELECT n.nodename || ':' || n.nodeport, count(*), count(DISTINCT s.logicalrelid)
FROM pg_dist_shard s JOIN pg_dist_placement p USING (shardid)
JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'
WHERE s.shardminvalue IS NOT NULL GROUP BY 1 ORDER BY 1
"""


@dataclass(frozen=True)
class NodeContents:
    """What a node holds of the distributed tables."""

    node: str
    tables: int
    shards: int
    workspaces: int
    rows: int


def plan_distribution() -> tuple[Catalog, list[Step]]:
    """Return the state of the database and the steps that are missing."""
    catalog = read_catalog()
    steps = build_plan(catalog)
    if catalog.has_citus and (steps or not has_fetch_function()):
        steps.append(
            Step(
                f"Create {FETCH_FUNCTION}, which records fetches on the node of a workspace.",
                build_fetch_function(),
            )
        )
    return catalog, steps


def has_fetch_function() -> bool:
    """Whether the function exists and stores all present columns: each release may add some."""
    columns = ", ".join(STORED_COLUMNS)
    rows = query_rows("SELECT prosrc FROM pg_proc WHERE proname = %s", [FETCH_FUNCTION])
    return any(f"(id, {columns})" in source for (source,) in rows)


def distribute(steps: list[Step], catalog: Catalog, report: Reporter) -> None:
    """Carry out the steps in one transaction: a failure changes nothing."""
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in TRANSACTION_SETTINGS:
            cursor.execute(statement)
        # Lock the tables before anything is changed, so that nobody else writes until the end.
        local = [name for name in catalog.tenant_tables if name not in catalog.distributed_tables]
        if local:
            names = ", ".join(quote_name(name) for name in local)
            cursor.execute(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE")
        for step in steps:
            report(step.title)
            for statement in step.statements:
                cursor.execute(statement)


def list_node_contents(catalog: Catalog) -> list[NodeContents]:
    """Count the workspaces and rows of each node. It reads every table."""
    homes: dict[int, str] = dict(query_rows(WORKSPACE_NODES_SQL))
    workspaces, rows = Counter(homes.values()), Counter[str]()
    for table in catalog.tenant_tables:
        counts = query_rows(f"SELECT workspace_id, count(*) FROM {quote_name(table)} GROUP BY workspace_id")  # noqa: S608  # a table of ours
        for workspace_id, count in counts:
            rows[homes[workspace_id]] += count
    return [
        NodeContents(node, tables, shards, workspaces[node], rows[node])
        for node, shards, tables in query_rows(SHARDS_SQL)
    ]

"""Queries over all workspaces, and locks, that work while a node of a distributed database is lost."""

import random
import time
from collections.abc import Callable, Iterable
from itertools import chain
from typing import TypeVar

import structlog
from django.db import DatabaseError, connection
from django.db.models import QuerySet

from core.db.citus_nodes import has_citus, list_lost_nodes, query
from core.db.workspace_scope import ALL_WORKSPACES, current_scope, get_scope_id, workspace_scope
from personas.workspaces.models import Workspace

log = structlog.get_logger(__name__)

T = TypeVar("T")
# Finds the node of each workspace. All rows of a workspace are on the same node.
WORKSPACE_NODES_SQL = """
SELECT w.id, n.nodename || ':' || n.nodeport FROM personas_workspace w
JOIN pg_dist_placement p ON p.shardid = get_shard_id_for_distribution_column('personas_agent', w.id)
JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'
"""
# How many seconds a query may take for all reachable workspaces: well under the time limit of jobs.
TIME_LIMIT_SECONDS = 30.0
# First key of the advisory lock of a workspace; the second is the workspace id.
WORKSPACE_LOCK = 7_204


class WorkspaceResults(list[T]):
    """Results of a query over all workspaces, and how many workspaces were left out."""

    skipped_count = 0


def query_workspaces(run: Callable[[], T]) -> WorkspaceResults[T]:
    """Run a query over all workspaces, and return its result in a list.

    Such a query fails while a node of Citus is lost. It is then run again for each workspace of the other
    nodes, and the list has one result for each. The workspaces that are left out are counted in the log. The
    query must use the manager `unscoped`, which filters by the workspace scope.
    """
    try:
        return WorkspaceResults([run()])
    except DatabaseError:
        if connection.in_atomic_block or current_scope() != ALL_WORKSPACES:
            raise
        homes, lost_nodes = find_workspace_nodes()
        if not lost_nodes:
            raise
    return run_for_reachable(run, homes, lost_nodes)


def run_for_reachable(
    run: Callable[[], T], homes: dict[int, str], lost_nodes: set[str]
) -> WorkspaceResults[T]:
    reachable = [workspace_id for workspace_id, node in homes.items() if node not in lost_nodes]
    # Random order, so that runs that reach the time limit do not always leave out the same workspaces.
    random.shuffle(reachable)
    deadline = time.monotonic() + TIME_LIMIT_SECONDS
    results = WorkspaceResults[T]()
    for workspace_id in reachable:
        if time.monotonic() > deadline:
            break
        try:
            with workspace_scope(workspace_id):
                results.append(run())
        except DatabaseError:
            log.exception("workspace_query_failed", workspace=workspace_id)
    results.skipped_count = len(homes) - len(results)
    log.warning(
        "workspaces_skipped",
        nodes=sorted(lost_nodes),
        skipped=results.skipped_count,
        unreachable=len(homes) - len(reachable),
    )
    return results


def list_from_workspaces(run: Callable[[], Iterable[T]]) -> list[T]:
    """Run a query that returns several values with `query_workspaces`, and return them as one list."""
    return list(chain.from_iterable(query_workspaces(lambda: list(run()))))


def list_workspaces_in_scope() -> QuerySet[Workspace]:
    """Return the workspace of the scope, or all of them. The model has no manager that does this."""
    scope_id = get_scope_id()
    return Workspace.objects.all() if scope_id is None else Workspace.objects.filter(pk=scope_id)


def find_workspace_nodes() -> tuple[dict[int, str], set[str]]:
    """Return the node of each workspace, and the nodes that do not answer; nothing without Citus."""
    lost = set(list_lost_nodes())
    return (dict(query(WORKSPACE_NODES_SQL)) if lost else {}), lost


def list_unreachable_workspaces() -> set[int]:
    """Return the workspaces whose node does not answer."""
    homes, lost = find_workspace_nodes()
    return {workspace_id for workspace_id, node in homes.items() if node in lost}


def lock_workspace(workspace_id: int) -> Workspace:
    """Lock the workspace until the end of the transaction, and return it as it is stored.

    Only one transaction at a time has this lock. FOR NO KEY UPDATE does not block inserts of rows that
    reference the workspace. With Citus it is an advisory lock of the coordinator: the row is on all nodes,
    and its lock is taken on the first worker, whose loss would concern the workspaces of all nodes.
    """
    if not has_citus():
        return Workspace.objects.select_for_update(no_key=True).get(pk=workspace_id)
    query("SELECT pg_advisory_xact_lock(%s::int, %s::int)::text", [WORKSPACE_LOCK, workspace_id % 2**31])
    return Workspace.objects.get(pk=workspace_id)

"""Queries over all workspaces go on without those of a lost node; the lock of a workspace excludes others."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import DatabaseError, connection, transaction
from structlog.testing import capture_logs

from core.db.citus_nodes import list_lost_nodes, list_node_states
from core.db.workspace_scope import get_scope_id
from personas.models import Agent
from personas.tenancy.lost_nodes import (
    list_from_workspaces,
    list_unreachable_workspaces,
    list_workspaces_in_scope,
    lock_workspace,
    query_workspaces,
    run_for_reachable,
)
from tests.factories import make_agent

pytestmark = pytest.mark.django_db


@pytest.fixture
def homes(workspace, elsewhere) -> dict[int, str]:
    """Return two workspaces with an agent each, on two nodes."""
    make_agent(workspace, "pilot")
    make_agent(elsewhere, "spy")
    return {workspace.pk: "first", elsewhere.pk: "second"}


def list_slugs() -> list[str]:
    return list(Agent.unscoped.values_list("slug", flat=True))


def test_all_workspaces_are_queried_at_once(homes, django_assert_num_queries):
    with django_assert_num_queries(1):
        assert sorted(list_from_workspaces(list_slugs)) == ["pilot", "spy"]
    assert query_workspaces(get_scope_id) == [None]


@pytest.mark.parametrize(("lost", "slugs"), [("first", ["spy"]), ("second", ["pilot"])])
def test_the_workspaces_of_a_lost_node_are_skipped_and_counted(homes, lost, slugs):
    with capture_logs() as logs:
        results = run_for_reachable(list_slugs, homes, {lost})
    assert results == [slugs]
    assert results.skipped_count == 1
    [event] = [line for line in logs if line["event"] == "workspaces_skipped"]
    assert (event["nodes"], event["skipped"], event["unreachable"]) == ([lost], 1, 1)


def test_a_failure_in_one_workspace_does_not_stop_the_others(homes, workspace):
    def list_unless_first() -> list[str]:
        if get_scope_id() == workspace.pk:
            raise DatabaseError
        return list_slugs()

    results = run_for_reachable(list_unless_first, homes, set())
    assert results == [["spy"]]
    assert results.skipped_count == 1


def test_each_query_is_in_the_scope_of_its_workspace(homes):
    results = run_for_reachable(
        lambda: list(list_workspaces_in_scope().values_list("pk", flat=True)), homes, set()
    )
    assert sorted(results) == sorted([pk] for pk in homes)
    assert list_workspaces_in_scope().count() >= 2


def test_without_citus_no_node_is_lost_and_an_error_is_raised(homes):
    def fail() -> None:
        raise DatabaseError("a fault of the query")

    assert list_node_states() == {}
    assert list_lost_nodes() == []
    assert list_unreachable_workspaces() == set()
    with pytest.raises(DatabaseError, match="a fault of the query"):
        query_workspaces(fail)


# --- the lock ------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.environ.get("TEST_DATABASE") == "sqlite", reason="SQLite has one writer at a time")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("has_citus", [False, True])
def test_one_transaction_at_a_time_has_the_lock_of_a_workspace(workspace, elsewhere, has_citus):
    def lock(pk: int) -> bool:
        """Return whether another connection gets the lock at once."""
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '100ms'")
                connection.connection.has_citus = has_citus
                return lock_workspace(pk).pk == pk
        except DatabaseError:
            return False
        finally:
            connection.connection.has_citus = False
            connection.close()

    with ThreadPoolExecutor(1) as other:
        connection.ensure_connection()
        connection.connection.has_citus = has_citus
        try:
            with transaction.atomic():
                assert lock_workspace(workspace.pk) == workspace
                assert other.submit(lock, workspace.pk).result() is False
                assert other.submit(lock, elsewhere.pk).result() is True
            assert other.submit(lock, workspace.pk).result() is True
        finally:
            connection.connection.has_citus = False

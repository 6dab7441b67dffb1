"""`distribute` on Citus refuses to start if a precondition is not met, and has nothing to do a second time.

These tests need TEST_DATABASE=citus; tests/citus/test_suite.py runs them so.
"""

from io import StringIO
from pathlib import Path

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection

from project.distribution.catalog import read_catalog
from project.distribution.preconditions import check_connections, list_obstacles
from tests.citus.conftest import RESTRICTED_ROLE, connected_as
from tests.citus.nodes import CitusCluster
from tests.project.backup.backup_stage import manage
from tests.pytest_servers import get_citus_cluster

pytestmark = [
    pytest.mark.hard,
    pytest.mark.skipif(
        get_citus_cluster() is None, reason="run by tests/citus/test_suite.py if there is a Citus"
    ),
]
NAME = "without_workers"


@pytest.fixture
def cluster(distributed_database: None, transactional_connection: None) -> CitusCluster:
    found = get_citus_cluster()
    assert found is not None
    return found


@pytest.fixture
def empty_url(cluster):
    """Return the URL of a database with the extension, and without workers and tables."""
    cluster.coordinator.execute("postgres", f"CREATE DATABASE {NAME}")
    cluster.coordinator.execute(NAME, "CREATE EXTENSION citus")
    yield cluster.coordinator.url_of(NAME)
    cluster.coordinator.execute("postgres", f"DROP DATABASE {NAME} WITH (FORCE)")


def list_sentences(**options) -> str:
    return " ".join(list_obstacles(read_catalog(), **({"backup": None, "without_backup": True} | options)))


# pytest-django creates the database only if a test asks for it with this mark.
@pytest.mark.django_db
def test_a_distributed_database_meets_the_preconditions(cluster):
    assert list_sentences() == ""


def test_a_second_run_has_nothing_to_do_and_reports_the_nodes(cluster):
    output = StringIO()
    call_command("distribute", stdout=output)
    assert "Nothing to do." in output.getvalue()
    for worker in cluster.workers:
        assert f"127.0.0.1:{worker.port}: " in output.getvalue()


def test_another_connection_is_an_obstacle_and_those_between_nodes_are_none(cluster):
    # It opens connections between the nodes.
    read_catalog()
    assert list(check_connections()) == []
    name = str(connection.settings_dict["NAME"])
    with psycopg.connect(cluster.coordinator.url_of(name)):
        [sentence] = check_connections()
    assert "1 of postgres" in sentence


def test_a_backup_is_needed(cluster, tmp_path: Path):
    assert "Pass a backup of the last hour" in list_sentences(without_backup=False)
    assert list_sentences(without_backup=False, backup=tmp_path / "none")


def test_the_restricted_role_is_an_obstacle(cluster):
    with connected_as(RESTRICTED_ROLE):
        assert "does not own the tables" in list_sentences()


def test_a_database_without_workers_and_tables_is_refused(empty_url):
    plan = manage(empty_url, "distribute", "--plan", "--without-backup")
    assert plan.returncode == 0, plan.stderr[-2_000:]
    for sentence in ("Add them with citus_add_node()", "Run manage.py migrate"):
        assert sentence in plan.stdout
    refused = manage(empty_url, "distribute", "--without-backup")
    assert refused.returncode != 0
    assert "Add them with citus_add_node()" in refused.stderr
    with psycopg.connect(empty_url) as server:
        assert server.execute("SELECT count(*) FROM pg_dist_partition").fetchone() == (0,)

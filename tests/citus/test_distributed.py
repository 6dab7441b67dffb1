"""The product on Citus: placement, guards on each shard, a lost node, and a later migration.

These tests need TEST_DATABASE=citus; tests/citus/test_suite.py runs them so.
"""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import DatabaseError, connection, migrations, models
from django.db.migrations.state import ProjectState
from django.test import Client

from core.db.citus_nodes import list_node_states
from core.db.online_migrations import AddIndexOnline
from core.db.row_level_security import EnableRowLevelSecurity
from personas.models import Membership, Workspace
from project.distribution.catalog import query_rows, read_catalog
from project.distribution.plan import build_plan
from project.distribution.services import distribute, list_node_contents
from project.doctor.checks import check_nodes
from prompts.evidence.integrity.verify import verify_workspace
from prompts.evidence.ledger.partitions import (
    DEFAULT_PARTITION,
    create_partitions,
    list_unprotected_partitions,
)
from prompts.models import LedgerEntry
from prompts.serving.errors import ServingUnavailable
from tests.citus.nodes import SHARD_COUNT
from tests.citus.outage import lost_worker
from tests.factories import make_user, make_workspace
from tests.prompts.serving.serving_stage import insert_row, make_stage
from tests.pytest_servers import get_citus_cluster

pytestmark = [
    pytest.mark.hard,
    pytest.mark.skipif(
        get_citus_cluster() is None, reason="run by tests/citus/test_suite.py if there is a Citus"
    ),
]
# Append-only tables, whose triggers must be on every shard.
GUARDED = ("prompts_promptversion", "personas_auditevent", "personas_revision")
# The number of active triggers of each shard.
GUARDS_SQL = """
SELECT result FROM run_command_on_shards(%s, $$SELECT count(*) FROM pg_trigger
WHERE tgrelid = '%%s'::regclass AND NOT tgisinternal AND tgenabled = 'O'$$)
"""


def test_workspaces_are_on_both_workers_and_fetches_are_recorded_there(stages):
    assert len(stages) == 2
    for stage in stages.values():
        stage.fetch()
        stage.fetch()
        ids = [row.pk for row in LedgerEntry.objects.in_workspace(stage.workspace).order_by("at")]
        assert ids == sorted(ids)
        # Ids of a worker's own sequence begin with the number of the worker.
        assert max(ids) < 2**40
        assert verify_workspace(stage.workspace).first is None
    contents = list_node_contents(read_catalog())
    assert [node.workspaces > 0 and node.rows > 0 for node in contents] == [True, True]


# pytest-django creates the database only if a test asks for it with this mark.
@pytest.mark.django_db
@pytest.mark.parametrize("table", GUARDED)
def test_every_shard_of_an_append_only_table_refuses_changes(stages, table):
    rows = query_rows(GUARDS_SQL, [table])
    assert len(rows) == SHARD_COUNT
    assert all(int(count) > 0 for (count,) in rows)
    with pytest.raises(DatabaseError, match="only grows"):
        query_rows(f"DELETE FROM {table} RETURNING 1")  # noqa: S608


def test_rows_of_a_month_without_a_partition_are_moved_into_it(stages):
    for number in (1, 2):
        # Of their own: their rows are not in order of time.
        stage = make_stage(make_workspace(f"Late {number}", owner=make_user(f"Late {number}")))
        stage.fetch()
        insert_row(stage, datetime(2021, 3, 5, tzinfo=UTC))
    assert query_rows(f"SELECT count(*) FROM {DEFAULT_PARTITION}") == [(2,)]  # noqa: S608
    assert create_partitions() == ["prompts_ledgerentry_2021_03"]
    assert query_rows("SELECT count(*) FROM prompts_ledgerentry_2021_03") == [(2,)]
    assert query_rows(f"SELECT count(*) FROM {DEFAULT_PARTITION}") == [(0,)]  # noqa: S608
    assert list_unprotected_partitions() == []
    for name in (DEFAULT_PARTITION, "prompts_ledgerentry_2021_03"):
        assert set(query_rows(GUARDS_SQL, [name])) == {("2",)}
        with pytest.raises(DatabaseError, match="only grows"):
            query_rows("DELETE FROM prompts_ledgerentry_2021_03 RETURNING 1")


@pytest.mark.parametrize("number", [0, 1])
def test_a_lost_worker_concerns_its_own_workspaces_only(stages, number):
    """Each worker once: the first one has the locks of reference tables."""
    with lost_worker(number) as lost:
        [kept] = set(stages) - {lost}
        assert list_node_states() == {lost: False, kept: True}
        [finding] = check_nodes()
        assert lost in finding.message
        assert read_status(stages[kept].workspace) == (200, None)
        assert read_status(stages[lost].workspace) == (503, "2")
        stages[kept].edit(f"Be calm without {number}.")
        assert stages[kept].fetch().text.count(f"Be calm without {number}.") == 1
        with pytest.raises(ServingUnavailable):
            stages[lost].fetch()
    assert read_status(stages[lost].workspace) == (200, None)
    stages[lost].fetch()


def read_status(workspace: Workspace) -> tuple[int, str | None]:
    """Sign in as the owner, and return the status of a page and its Retry-After."""
    client = Client(raise_request_exception=False)
    client.force_login(Membership.objects.in_workspace(workspace).get().user)
    response = client.get(f"/w/{workspace.slug}/agents/")
    return response.status_code, response.headers.get("Retry-After")


# --- a later migration ---------------------------------------------------------------------------------


def test_a_later_migration_adds_a_field_an_index_and_a_table(stages):
    state = ProjectState.from_apps(__import__("django").apps.apps)
    field = migrations.AddField("soul", "later", models.IntegerField(null=True))
    index = AddIndexOnline("soul", models.Index(fields=["workspace", "later"], name="souls_later"))
    table = migrations.CreateModel(
        "Later",
        [
            ("id", models.BigAutoField(primary_key=True)),
            ("workspace", models.ForeignKey("personas.Workspace", models.PROTECT, related_name="+")),
            ("soul", models.ForeignKey("personas.Soul", models.CASCADE, related_name="+")),
            ("note", models.TextField()),
        ],
        {"constraints": [models.UniqueConstraint(fields=["workspace", "note"], name="later_notes")]},
    )
    for operation in (field, index, table, EnableRowLevelSecurity("personas_later")):
        state = run_operation(operation, state)
    catalog = read_catalog()
    assert catalog.undistributed_tables == ["personas_later"]
    distribute(build_plan(catalog), catalog, print)
    after = read_catalog()
    assert build_plan(after) == []
    assert {"personas_later"} <= after.distributed_tables


def run_operation(operation: Any, state: ProjectState) -> ProjectState:
    to_state = state.clone()
    operation.state_forwards("personas", to_state)
    with connection.schema_editor(
        atomic=operation.atomic if operation.atomic is not None else True
    ) as editor:
        operation.database_forwards("personas", editor, state, to_state)
    return to_state

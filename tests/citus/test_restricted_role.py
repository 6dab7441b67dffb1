"""Row-level security on Citus: the restricted role reads and writes one workspace at a time on every node.

These tests need TEST_DATABASE=citus; tests/citus/test_suite.py runs them so.
"""

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client

from core.db.workspace_scope import all_workspaces, no_workspace, workspace_scope
from personas.models import Agent, Membership, Soul
from project.database.postgresql import rls_cursor
from project.database.rls_audit import get_tenant_tables
from project.database.roles import is_role_restricted
from project.distribution.catalog import REFERENCE_TABLES, query_rows
from prompts.evidence.integrity.verify import verify_workspace
from prompts.evidence.ledger import blocks
from prompts.models import LedgerBlock
from prompts.tasks import seal_ledger_job, sign_checkpoints_job, sweep_prompts_job
from skills.tasks import sweep_sources_job
from tests.citus.nodes import SHARD_COUNT
from tests.citus.outage import lost_worker, run_scheduled_jobs
from tests.factories import make_memory
from tests.pytest_servers import get_citus_cluster

pytestmark = [
    pytest.mark.hard,
    pytest.mark.skipif(
        get_citus_cluster() is None, reason="run by tests/citus/test_suite.py if there is a Citus"
    ),
]
SHARD_POLICIES_SQL = """
SELECT result FROM run_command_on_shards(%s, $$SELECT count(*) FROM pg_policy p
JOIN pg_class t ON t.oid = p.polrelid WHERE t.oid = '%%s'::regclass AND t.relrowsecurity$$)
"""


def count_agents_by_workspace() -> dict[int, int]:
    return dict(query_rows("SELECT workspace_id, count(*) FROM personas_agent GROUP BY 1"))


@pytest.mark.parametrize("is_atomic", [False, True])
def test_raw_sql_reads_the_workspace_of_the_scope_only(stages, restricted, is_atomic):
    assert is_role_restricted()
    first, second = (stage.workspace.pk for stage in stages.values())

    def read() -> None:
        with workspace_scope(first):
            assert set(count_agents_by_workspace()) == {first}
        with workspace_scope(second):
            assert set(count_agents_by_workspace()) == {second}
        with no_workspace():
            assert count_agents_by_workspace() == {}
        with all_workspaces():
            assert {first, second} <= set(count_agents_by_workspace())

    if is_atomic:
        with transaction.atomic():
            read()
    else:
        read()


def test_a_write_into_another_workspace_is_rejected(stages, restricted):
    first, second = (stage.workspace for stage in stages.values())
    soul = {"workspace_id": second.pk, "name": "Strange", "slug": "strange", "text": "x"}
    with workspace_scope(first.pk), pytest.raises(DatabaseError, match="row-level security"):
        Soul(**soul).save(force_insert=True)
    with workspace_scope(first.pk), connection.cursor() as cursor:
        cursor.execute("UPDATE personas_agent SET name = 'Taken' WHERE workspace_id = %s", [second.pk])
        assert cursor.rowcount == 0
    assert not Agent.objects.in_workspace(second).filter(name="Taken").exists()


def test_records_are_written_and_pages_are_served(stages, restricted):
    for stage in stages.values():
        with workspace_scope(stage.workspace.pk):
            make_memory(stage.workspace, "Remembered on Citus.")
        client = Client()
        client.force_login(Membership.objects.in_workspace(stage.workspace).get().user)
        assert client.get(f"/w/{stage.workspace.slug}/agents/").status_code == 200
        page = client.get(f"/w/{stage.workspace.slug}/memories/")
        assert "Remembered on Citus." in page.content.decode()


def test_an_edit_and_a_fetch_are_recorded(stages, restricted):
    for stage in stages.values():
        count = len(stage.rows)
        with workspace_scope(stage.workspace.pk):
            stage.edit(f"Be careful in {stage.workspace.name}.")
        assert "Be careful" in stage.fetch().text
        assert len(stage.rows) == count + 1


def test_jobs_over_all_workspaces_work(stages, restricted, monkeypatch):
    for stage in stages.values():
        stage.fetch()
    monkeypatch.setattr(blocks, "SETTLE_DELAY", -blocks.SETTLE_DELAY)
    for job in (sweep_prompts_job, sweep_sources_job, seal_ledger_job, sign_checkpoints_job):
        job()
    for stage in stages.values():
        sealed = LedgerBlock.objects.in_workspace(stage.workspace).filter(last_id=stage.rows[-1].pk)
        assert sealed.exists()
        with workspace_scope(stage.workspace.pk):
            assert verify_workspace(stage.workspace).first is None


@pytest.mark.parametrize("number", [0, 1])
def test_jobs_work_without_the_workspaces_of_a_lost_worker(stages, restricted, number):
    with lost_worker(number) as lost:
        [kept] = set(stages) - {lost}
        assert run_scheduled_jobs() == {}
        with workspace_scope(stages[kept].workspace.pk):
            stages[kept].edit(f"Be brief without {number}.")
        assert f"Be brief without {number}." in stages[kept].fetch().text
    assert run_scheduled_jobs() == {}


# pytest-django creates the database only if a test asks for it with this mark.
@pytest.mark.django_db
def test_every_shard_has_the_policy_of_its_table(stages):
    for table in get_tenant_tables():
        policies = query_rows(SHARD_POLICIES_SQL, [table])
        assert set(policies) == {("1",)}, table
        assert len(policies) == (1 if table in REFERENCE_TABLES else SHARD_COUNT), table


@pytest.mark.planted
def test_a_scope_in_the_message_of_the_statement_is_noticed(stages, restricted, monkeypatch):
    """The planted fault: Citus passes the whole message on, and fails."""
    monkeypatch.setattr(rls_cursor, "needs_separate_scope", lambda raw: False)
    stage = next(iter(stages.values()))
    with pytest.raises(DatabaseError), workspace_scope(stage.workspace.pk):
        make_memory(stage.workspace, "Not written.")

"""Row-level security: PostgreSQL returns only rows of the request's workspace, whatever the query."""

import os
import re
from contextlib import ExitStack, suppress

import pytest
import time_machine
from django.db import DatabaseError, connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone

from core.db import workspace_scope
from core.db.row_level_security import POLICY_NAME, EnableRowLevelSecurity
from personas.members.services import build_invitation_token, invite_member
from personas.models import Agent, Soul
from personas.roles import Role
from project.database.postgresql.rls_cursor import RESTRICTED_ATTRIBUTE
from project.database.rls_audit import find_unprotected_tables, get_tenant_tables
from project.database.roles import UnsuitableRole, get_role_flags, prepare_role
from project.metrics.periodic import measure_metrics
from prompts.evidence.integrity.verify import verify_workspace
from prompts.evidence.ledger import blocks
from prompts.models import Checkpoint, LedgerBlock, LedgerEntry, PromptVersion
from prompts.studio.search.search import filter_by_digest
from prompts.tasks import rebuild_prompts_job, seal_ledger_job, sign_checkpoints_job
from tests.factories import make_agent
from tests.project.database.migration_rules import plan
from tests.project.database.restricted_role import as_app_role, execute_sql
from tests.prompts.serving.serving_stage import make_stage
from tests.shared_cast import (  # noqa: F401  # fixtures
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_elsewhere,
    shared_mallory,
    shared_workspace,
)

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls("tests.project.database.row_level_security_urls"),
    pytest.mark.skipif(os.environ.get("TEST_DATABASE") == "sqlite", reason="SQLite has no roles"),
]


@pytest.fixture
def rows(agent, elsewhere):
    """Return an agent of the workspace and one of another workspace."""
    return [agent, make_agent(elsewhere, "spy")]


@pytest.fixture
def role(rows, as_alice):
    with as_app_role() as name:
        yield name


def agents() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT slug FROM personas_agent")
        return {slug for (slug,) in cursor.fetchall()}


# --- the role and the tables ---------------------------------------------------------------------------


def test_the_role_has_no_privilege_that_bypasses_row_level_security(role):
    flags = get_role_flags(role)
    assert flags is not None
    assert not flags.excess
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user, row_security_active('personas_agent')")
        assert cursor.fetchone() == (role, True)


FORBIDDEN = [
    "ALTER TABLE personas_agent DISABLE ROW LEVEL SECURITY",
    f"DROP POLICY {POLICY_NAME} ON personas_agent",
    "TRUNCATE personas_erasure",
    "CREATE TABLE mine (id int)",
    "ALTER TABLE prompts_ledgerentry DISABLE TRIGGER ALL",
    "DELETE FROM django_migrations",
]


def test_the_role_cannot_disable_row_level_security(role):
    refused = []
    for statement in FORBIDDEN:
        with suppress(DatabaseError), transaction.atomic():
            execute_sql(statement)
            continue
        refused.append(statement)
    assert refused == FORBIDDEN


def test_every_table_with_a_workspace_has_row_level_security():
    assert len(get_tenant_tables()) > 50
    assert not find_unprotected_tables()


def test_a_role_can_be_prepared_repeatedly():
    assert prepare_role("app_twice", "secret words") is True
    assert prepare_role("app_twice", "other words") is False


@pytest.mark.planted
def test_a_role_that_may_too_much_is_refused():
    execute_sql("CREATE ROLE app_strong BYPASSRLS CREATEDB")
    with pytest.raises(UnsuitableRole, match="bypasses row-level security, can create databases"):
        prepare_role("app_strong")


@pytest.mark.planted
def test_a_member_of_the_owner_role_is_rejected():
    execute_sql("CREATE ROLE app_deputy IN ROLE postgres")
    with pytest.raises(UnsuitableRole, match="owns tables"):
        prepare_role("app_deputy")


def test_only_the_owner_prepares_a_role(role):
    with pytest.raises(UnsuitableRole, match="does not own the tables"):
        prepare_role("app_other")


@pytest.mark.planted
@pytest.mark.parametrize(
    ("statement", "hole"),
    [
        ("ALTER TABLE personas_agent DISABLE ROW LEVEL SECURITY", "row-level security is disabled"),
        (f"DROP POLICY {POLICY_NAME} ON personas_agent", "it has policies other than"),
        (f"ALTER POLICY {POLICY_NAME} ON personas_agent USING (true)", "does not check"),
        (f"ALTER POLICY {POLICY_NAME} ON personas_agent WITH CHECK (true)", "does not check"),
        ("CREATE POLICY second ON personas_agent USING (true)", "it has policies other than"),
    ],
)
def test_a_gap_in_the_policies_is_reported(statement, hole):
    execute_sql(statement)
    assert any(line.startswith("personas_agent: ") and hole in line for line in find_unprotected_tables())


# --- requests ------------------------------------------------------------------------------------------


def test_raw_sql_inside_a_request_sees_its_own_workspace_only(role, as_alice, workspace):
    answer = as_alice.get(f"/w/{workspace.slug}/raw/")
    assert answer.json() == {"agents": ["pilot"], "workspaces": [workspace.slug]}


def test_it_cannot_write_into_another_and_goes_on_after_the_refusal(role, as_alice, workspace, elsewhere):
    answer = as_alice.get(f"/w/{workspace.slug}/raw/into/{elsewhere.pk}/").json()
    assert "row-level security" in answer["refused"]
    assert answer["agents"] == ["pilot"]
    changed = as_alice.get(f"/w/{workspace.slug}/raw/taken/{elsewhere.pk}/").json()
    assert changed == {"changed": 1, "foreign": 0}


def test_outside_of_a_workspace_there_is_nothing_to_see(role, as_alice, client):
    for visitor in (client, as_alice):
        assert visitor.get("/raw/").json() == {"agents": [], "workspaces": []}


def test_an_outsider_gets_404(role, as_mallory, workspace):
    assert as_mallory.get(f"/w/{workspace.slug}/raw/").status_code == 404


def test_a_streaming_response_is_read_in_the_scope_of_its_request(role, as_alice, workspace):
    with workspace_scope.no_workspace():
        answer = as_alice.get(f"/w/{workspace.slug}/agents/?format=csv")
        assert answer.streaming
        content = b"".join(answer.streaming_content).decode()
        assert workspace_scope.current_scope() == workspace_scope.NO_WORKSPACE
    assert "pilot" in content
    assert "spy" not in content


@pytest.mark.planted
def test_without_entering_the_workspace_no_row_is_visible(role, as_alice, workspace, monkeypatch):
    monkeypatch.setattr(workspace_scope, "enter_workspace", lambda workspace_id: None)
    answer = as_alice.get(f"/w/{workspace.slug}/raw/").json()
    assert answer == {"agents": [], "workspaces": []}


@pytest.mark.planted
def test_without_row_level_security_the_same_page_shows_everything(rows, as_alice, workspace):
    """Shows what happens if a query does not filter by workspace."""
    assert as_alice.get(f"/w/{workspace.slug}/raw/").json()["agents"] == ["pilot", "spy"]


# --- the scope -----------------------------------------------------------------------------------------


def test_without_a_scope_no_row_is_visible(role, workspace):
    setattr(connection.connection, RESTRICTED_ATTRIBUTE, False)
    assert agents() == set()
    setattr(connection.connection, RESTRICTED_ATTRIBUTE, True)
    assert agents() == {"pilot", "spy"}
    with workspace_scope.no_workspace():
        assert agents() == set()
    with workspace_scope.workspace_scope(workspace.pk):
        assert agents() == {"pilot"}


def test_a_rollback_takes_nothing_away(role, workspace, elsewhere):
    with workspace_scope.workspace_scope(workspace.pk):
        with pytest.raises(DatabaseError), transaction.atomic():
            execute_sql("SELECT 1/0")
        assert agents() == {"pilot"}
        with ExitStack() as later:
            sid = transaction.savepoint()
            later.callback(transaction.savepoint_rollback, sid)
            with workspace_scope.workspace_scope(elsewhere.pk):
                assert agents() == {"spy"}
        assert agents() == {"pilot"}


def test_rows_read_in_portions_are_of_the_same_workspace(role, workspace):
    with workspace_scope.workspace_scope(workspace.pk):
        slugs = [row.slug for row in Agent.unscoped.order_by("pk").iterator(chunk_size=1)]
        assert slugs == ["pilot"]
        with connection.cursor() as cursor:
            cursor.executemany("UPDATE personas_agent SET name = %s", [["One"], ["Two"]])
            assert cursor.rowcount == 2
    assert Agent.unscoped.filter(name="Two").count() == 1


def test_a_query_uses_its_index_with_row_level_security(role, workspace):
    with workspace_scope.workspace_scope(workspace.pk):
        execute_sql("SET LOCAL enable_seqscan = off")
        rows = Agent.objects.in_workspace(workspace).filter(slug="pilot")
        plan_text = rows.explain(verbose=True)
    assert "Index Cond: (personas_agent.workspace_id =" in plan_text
    assert "SubPlan" not in plan_text


def test_a_version_is_found_by_its_digest_or_the_beginning_of_it_through_the_index(rows, workspace):
    rows = PromptVersion.objects.in_workspace(workspace)
    with as_app_role():
        pass  # Prepare the role before there are locks.
    # In a small table the planner may prefer this index, which has no digests.
    execute_sql("DROP INDEX prompts_promptversion_workspace_id_56518934")
    with as_app_role(), workspace_scope.workspace_scope(workspace.pk):
        execute_sql("SET LOCAL enable_seqscan = off")
        # Unordered: with few rows the planner prefers to read all of them in the order of their ids.
        for query in (rows.filter(digest="ab" * 32).order_by(), filter_by_digest(rows, "abab").order_by()):
            assert re.search(r"Index Cond: \(+workspace_id = \d+\) AND \(+digest\)", query.explain())


def test_the_owner_has_no_scope(rows, workspace, django_assert_num_queries):
    with workspace_scope.workspace_scope(workspace.pk):
        assert agents() == {"pilot", "spy"}
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('dramatis.workspace', true)")
            assert not cursor.fetchone()[0]


def test_the_scope_of_a_workspace_is_a_number():
    with pytest.raises(ValueError, match="invalid literal"):
        workspace_scope.enter_workspace("1'; DROP TABLE x; --")  # type: ignore[arg-type]


# --- jobs and bots -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_jobs_and_fetches_work_with_row_level_security(workspace, elsewhere, monkeypatch):
    monkeypatch.setattr(blocks, "SETTLE_DELAY", -blocks.SETTLE_DELAY)
    home, other = make_stage(workspace), make_stage(elsewhere)
    kinds = (PromptVersion, LedgerEntry, LedgerBlock, Checkpoint)
    with as_app_role():
        # The text has the time, to the minute.
        with workspace_scope.no_workspace(), time_machine.travel(timezone.now(), tick=False):
            assert {home.fetch().text, other.fetch().text} == {home.fetch().text}
        Soul.objects.in_workspace(workspace).update(text="Be calm.")
        rebuild_prompts_job(workspace.pk, [home.agent.pk])
        # A job for an agent of another workspace builds nothing.
        rebuild_prompts_job(elsewhere.pk, [home.agent.pk])
        seal_ledger_job()
        sign_checkpoints_job()
        metrics = measure_metrics()
    counts = [kind.objects.in_workspace(workspace).count() for kind in kinds]
    assert counts == [2, 2, 1, 1]
    assert [kind.objects.in_workspace(elsewhere).count() for kind in kinds] == [1, 1, 1, 1]
    assert verify_workspace(workspace).first is None
    assert (metrics["workspaces"], metrics["agents"]) == (2, 2)


# --- migrations ----------------------------------------------------------------------------------------


@pytest.fixture
def steps():
    loader = MigrationLoader(None)
    migrations = [loader.graph.nodes[key] for key in plan(loader)]
    return [
        step
        for migration in migrations
        for step in migration.operations
        if type(step) is EnableRowLevelSecurity
    ]


def forgotten(steps: list[EnableRowLevelSecurity]) -> set[str]:
    """Return the tables without row-level security in any migration; a new model needs its own operation."""
    return get_tenant_tables().keys() - {
        step.table for step in steps if get_tenant_tables()[step.table] == step.column
    }


def test_migrations_enable_row_level_security_for_every_table(steps):
    assert not forgotten(steps)


@pytest.mark.planted
def test_a_table_that_was_forgotten_is_named(steps):
    assert forgotten(steps[1:]) == {steps[0].table}


def test_the_operation_can_be_repeated_and_reversed():
    step = EnableRowLevelSecurity("personas_agent")
    with connection.schema_editor() as editor:
        step.database_forwards("prompts", editor, None, None)
        assert not find_unprotected_tables()
        step.database_backwards("prompts", editor, None, None)
        step.database_backwards("prompts", editor, None, None)
        assert {line.partition(":")[0] for line in find_unprotected_tables()} == {"personas_agent"}
        step.database_forwards("prompts", editor, None, None)
    assert not find_unprotected_tables()


# --- before the workspace is known ---------------------------------------------------------------------


def test_an_invitation_can_be_accepted_without_a_workspace(workspace, by_alice, as_mallory, mallory):
    token = build_invitation_token(invite_member(workspace, mallory.email, Role.VIEWER, by=by_alice))
    with as_app_role():
        assert workspace.name in as_mallory.get(f"/join/{token}/").content.decode()
        assert as_mallory.post(f"/join/{token}/")["Location"] == f"/w/{workspace.slug}/"
        visible = as_mallory.get(f"/w/{workspace.slug}/raw/").json()
    assert visible == {"agents": [], "workspaces": [workspace.slug]}


def test_a_workspace_can_be_created_without_a_workspace(role, as_alice):
    answer = as_alice.post("/workspaces/new/", {"name": "Quay", "slug": "quay"})
    assert answer["Location"] == "/w/quay/"
    assert as_alice.get("/w/quay/raw/").json() == {"agents": [], "workspaces": ["quay"]}
    taken = as_alice.post("/workspaces/new/", {"name": "Quay", "slug": "elsewhere"})
    assert taken["Location"].startswith("/w/elsewhere-")

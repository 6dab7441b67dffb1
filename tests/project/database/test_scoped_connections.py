"""Pooled connections keep no workspace scope, and some commands need the owner of the tables."""

import os
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import DataError, connection
from psycopg.pq import TransactionStatus

from core.db import workspace_scope
from core.db.row_level_security import ENABLE_STATEMENTS, POLICY_CONDITION, POLICY_NAME
from project.database.postgresql import base, rls_cursor
from project.database.postgresql.base import DatabaseWrapper
from project.doctor.checks import check_row_level_security
from tests.project.database.restricted_role import as_app_role, execute_sql
from tests.project.deployment.containers import own_database

pytestmark = pytest.mark.skipif(os.environ.get("TEST_DATABASE") == "sqlite", reason="SQLite has no roles")
TABLE = "personas_workspace"
ROLE = f"app_pooled_{os.getpid()}"


@pytest.fixture(scope="module")
def database(django_db_setup):
    """Return a separate database with two workspaces, row-level security and a role that may log in."""
    name = f"walls_{os.getpid()}"
    with own_database(name) as url:
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(f"CREATE TABLE {TABLE} AS SELECT id::bigint FROM generate_series(1, 2) id")  # noqa: S608
            for statement in ENABLE_STATEMENTS:
                condition = POLICY_CONDITION.format(column="id")
                server.execute(statement.format(policy=POLICY_NAME, table=TABLE, condition=condition))
            server.execute(f"CREATE ROLE {ROLE} LOGIN")
            server.execute(f"GRANT SELECT, UPDATE ON {TABLE} TO {ROLE}")
        yield name
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
        server.execute(f"DROP ROLE {ROLE}")


@pytest.fixture(params=["one message", "separate messages"])
def pooled(request, database, django_db_blocker):
    """Return a connection wrapper with a pool of one, so that every user gets the same connection.

    It sends scope and statement in one message, or as with Citus in two.
    """
    options = {**connection.settings_dict["OPTIONS"], "pool": {"min_size": 1, "max_size": 1, "timeout": 5}}
    settings = {
        **connection.settings_dict,
        "NAME": database,
        "USER": ROLE,
        "PASSWORD": "",
        "OPTIONS": options,
    }
    wrapper = DatabaseWrapper(settings, alias="pooled")
    with django_db_blocker.unblock():
        wrapper.ensure_connection()
        setattr(wrapper.connection, rls_cursor.CITUS_ATTRIBUTE, request.param == "separate messages")
        yield wrapper
        wrapper.close()
        wrapper.close_pool()


def ids(wrapper, *, by_portions: bool = False) -> list[int]:
    with wrapper.chunked_cursor() if by_portions else wrapper.cursor() as cursor:
        cursor.execute(f"SELECT id FROM {TABLE} ORDER BY id")  # noqa: S608  # our own name
        return [row for (row,) in cursor.fetchall()]


def left_over(wrapper) -> str:
    """Return the scope that is left on the connection, queried without our cursor."""
    wrapper.ensure_connection()
    row = psycopg.ClientCursor(wrapper.connection).execute(
        f"SELECT current_setting('{workspace_scope.SCOPE_SETTING}', true)"
    )
    return (row.fetchone() or [""])[0] or ""


@pytest.mark.parametrize("by_portions", [False, True])
def test_a_connection_keeps_no_scope(by_portions, pooled):
    with workspace_scope.workspace_scope(1):
        assert ids(pooled, by_portions=by_portions) == [1]
    first = pooled.connection
    assert rls_cursor.is_connection_restricted(first)
    assert left_over(pooled) == ""
    pooled.close()
    with workspace_scope.no_workspace():
        assert ids(pooled, by_portions=by_portions) == []
    assert pooled.connection is first
    with workspace_scope.workspace_scope(2):
        assert ids(pooled, by_portions=by_portions) == [2]
    with workspace_scope.all_workspaces():
        assert ids(pooled, by_portions=by_portions) == [1, 2]
    assert left_over(pooled) == ""


def test_the_scope_ends_with_the_transaction(pooled):
    pooled.ensure_connection()
    pooled.set_autocommit(False)
    with workspace_scope.workspace_scope(1):
        assert ids(pooled) == ids(pooled, by_portions=True) == [1]
        assert left_over(pooled) == "1"
    pooled.commit()
    assert left_over(pooled) == ""
    pooled.rollback()
    pooled.set_autocommit(True)


def test_executemany_has_the_scope_too(pooled):
    with workspace_scope.workspace_scope(1), pooled.cursor() as cursor:
        cursor.executemany(f"UPDATE {TABLE} SET id = id WHERE id = %s", [[1], [2]])  # noqa: S608
        assert cursor.rowcount == 1
    assert left_over(pooled) == ""


@pytest.mark.planted
def test_a_scope_left_on_a_connection_is_overridden(pooled):
    pooled.ensure_connection()
    psycopg.ClientCursor(pooled.connection).execute(f"SET {workspace_scope.SCOPE_SETTING} = '2'")
    pooled.close()
    with workspace_scope.workspace_scope(1):
        assert ids(pooled) == ids(pooled, by_portions=True) == [1]
    with workspace_scope.no_workspace():
        assert ids(pooled) == []
    pooled.connection.close()


@pytest.mark.planted
def test_a_scope_of_the_session_is_noticed(pooled, monkeypatch):
    monkeypatch.setattr(rls_cursor, "get_scope_statement", lambda: "SET dramatis.workspace = '1'")
    assert ids(pooled, by_portions=True) == [1]
    assert left_over(pooled) == "1"
    pooled.connection.close()


def test_a_failed_statement_leaves_no_scope_and_no_transaction(pooled):
    with workspace_scope.workspace_scope(1), pooled.cursor() as cursor:
        with pytest.raises(DataError):
            cursor.executemany(f"UPDATE {TABLE} SET id = id WHERE id = 1 / %s", [[0]])  # noqa: S608
        assert pooled.connection.info.transaction_status == TransactionStatus.IDLE
    assert left_over(pooled) == ""


# --- with Citus ----------------------------------------------------------------------------------------


@pytest.fixture
def apart(pooled):
    if not rls_cursor.needs_separate_scope(pooled.connection):
        pytest.skip("only with separate messages")
    return pooled


def test_the_statement_is_a_message_of_its_own(apart):
    with workspace_scope.workspace_scope(1), apart.cursor() as cursor:
        cursor.execute("SELECT current_query(), current_setting(%s)", [workspace_scope.SCOPE_SETTING])
        message, scope = cursor.fetchone()
    assert message.startswith("SELECT current_query()")
    assert scope == "1"


def test_the_scope_is_sent_again_only_if_it_has_changed(apart):
    sent = []

    def send(number):
        with workspace_scope.workspace_scope(number):
            before = getattr(apart.connection, rls_cursor.SENT_SCOPE_ATTRIBUTE)
            assert ids(apart) == [number]
            sent.append(before != str(number))

    with transaction_of(apart):
        for number in (1, 1, 2, 2, 1):
            send(number)
    assert sent == [True, False, True, False, True]


def test_the_scope_is_sent_again_after_a_savepoint_was_released(apart):
    with transaction_of(apart), workspace_scope.workspace_scope(1):
        savepoint = apart.savepoint()
        assert ids(apart) == [1]
        apart.savepoint_commit(savepoint)
        assert getattr(apart.connection, rls_cursor.SENT_SCOPE_ATTRIBUTE) is None
        assert ids(apart) == [1]


def test_a_rollback_to_a_savepoint_sets_the_scope_again(apart):
    with transaction_of(apart):
        with workspace_scope.workspace_scope(1):
            assert ids(apart) == [1]
        savepoint = apart.savepoint()
        with workspace_scope.workspace_scope(2):
            assert ids(apart) == [2]
            apart.savepoint_rollback(savepoint)
            assert ids(apart) == [2]


@pytest.mark.planted
def test_a_scope_that_is_not_set_again_after_a_rollback_is_noticed(apart, monkeypatch):
    with transaction_of(apart):
        with workspace_scope.workspace_scope(1):
            assert ids(apart) == [1]
        savepoint = apart.savepoint()
        with workspace_scope.workspace_scope(2):
            assert ids(apart) == [2]
            monkeypatch.setattr(base, "forget_sent_scope", lambda raw: None)
            apart.savepoint_rollback(savepoint)
            assert ids(apart) == [1]
        monkeypatch.undo()


@contextmanager
def transaction_of(wrapper):
    """Open a transaction with a savepoint, which begins before the first statement with a scope."""
    wrapper.set_autocommit(False)
    wrapper.in_atomic_block = True
    wrapper.savepoint()
    try:
        yield
    finally:
        wrapper.in_atomic_block = False
        wrapper.rollback()
        wrapper.set_autocommit(True)


# --- commands that need the owner, and the doctor ------------------------------------------------------


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_backups_are_taken_and_put_back_by_the_owner_alone(tmp_path: Path):
    copy, taken = str(tmp_path / "copy"), str(tmp_path / "taken")
    call_command("backup", taken)
    connection.ensure_connection()
    setattr(connection.connection, rls_cursor.RESTRICTED_ATTRIBUTE, True)
    try:
        for command in (["backup", copy], ["restore", taken], ["create_db_role", "someone"]):
            with pytest.raises(CommandError, match=r"does not own the tables|not the owner"):
                call_command(*command)
    finally:
        setattr(connection.connection, rls_cursor.RESTRICTED_ATTRIBUTE, False)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


@pytest.mark.django_db
def test_the_doctor_reports_whether_row_level_security_is_active(settings):
    settings.PRODUCTION = True
    (owner,) = check_row_level_security()
    assert (owner.state, owner.message[:16]) == ("warn", "Not effective: w")
    with as_app_role():
        (restricted,) = check_row_level_security()
    assert restricted.state == "ok"
    execute_sql("ALTER TABLE personas_memory DISABLE ROW LEVEL SECURITY")
    (open_,) = check_row_level_security()
    assert open_.state == "fail"
    assert "personas_memory: row-level security is disabled" in open_.message

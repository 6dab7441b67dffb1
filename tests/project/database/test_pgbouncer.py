"""Behind PgBouncer in transaction mode: scopes, cursors, the ledger connection, limits and the doctor."""

import os
from contextlib import closing
from copy import deepcopy

import psycopg
import pytest
import structlog
from django.core.management import call_command
from django.db import OperationalError, connection

from core.db import workspace_scope
from personas.models import Agent
from project.database import config
from project.database.config import DIRECT_KEY, POOLER_PREPARES_KEY, PREPARE_THRESHOLD
from project.database.postgresql import rls_cursor
from project.database.postgresql.base import DatabaseWrapper
from project.database.roles import get_role_settings, prepare_role, set_role_limits
from project.doctor.pooler import check_pooler
from prompts.models import LedgerEntry
from prompts.serving import ledger_connection, ledger_writer
from prompts.serving.errors import ServingUnavailable
from tests.database_cleanup import empty
from tests.factories import make_agent, make_user, make_workspace
from tests.module_fixtures import committed_rows_of_a_module
from tests.project.backup.backup_stage import manage
from tests.project.database.pgbouncer import PASSWORD, needs_pgbouncer, run_pgbouncer
from tests.project.deployment.production_settings import COMPLETE, run_settings
from tests.prompts.serving.serving_stage import make_stage
from tests.prompts.serving.test_ledger_writer import at_once

pytestmark = needs_pgbouncer
SCOPE_SQL = f"SELECT current_setting('{workspace_scope.SCOPE_SETTING}', true)"
COUNT_SQL = "SELECT count(*) FROM personas_agent"


@pytest.fixture(scope="module")
def committed(django_db_setup, django_db_blocker):
    """A workspace with a prompt and another one, and the restricted role with its limits."""
    role = f"app_bounced_{os.getpid()}"
    with committed_rows_of_a_module(django_db_blocker):
        stage = make_stage(make_workspace("Harbour", owner=make_user("Alice")))
        make_agent(make_workspace("Quarry", owner=make_user("Mallory")), "digger")
        prepare_role(role, PASSWORD)
        assert set_role_limits(role, 5_000)
        yield role, stage
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(f"DROP OWNED BY {role}")
        cursor.execute(f"DROP ROLE {role}")


@pytest.fixture(scope="module")
def pooler(committed):
    """A PgBouncer with two server connections."""
    role, _ = committed
    with run_pgbouncer(os.environ["DATABASE_URL"], role, default_pool_size="2") as running:
        yield running


@pytest.fixture
def stage(committed):
    yield deepcopy(committed[1])
    ledger_writer.PROCESS_WRITER.close()
    empty(["prompts_ledgerentry"])


def pooled_settings(pooler, *, prepares: bool = False) -> dict:
    """The settings of the test database, as build_pooled_config makes them."""
    direct = {**connection.settings_dict, "USER": pooler.role, "PASSWORD": PASSWORD}
    options = {"prepare_threshold": PREPARE_THRESHOLD if prepares else None, "connect_timeout": 3}
    direct["OPTIONS"] = {name: value for name, value in direct["OPTIONS"].items() if name != "pool"}
    own = {**pooler.settings(), "OPTIONS": options, POOLER_PREPARES_KEY: prepares, DIRECT_KEY: direct}
    return {**direct, **own}


def use_for_ledger(monkeypatch, values: dict) -> None:
    """Let the ledger connection of this process use other settings than Django's connection."""
    wrapper = DatabaseWrapper(values, alias="ledger")
    monkeypatch.setattr(ledger_connection, "connection", wrapper)


@pytest.fixture
def pooled(pooler, committed, django_db_blocker):
    with django_db_blocker.unblock(), closing(DatabaseWrapper(pooled_settings(pooler), "bounced")) as wrapper:
        yield wrapper


def fetch_one(wrapper, query: str):
    with wrapper.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchone()[0]


# --- which process uses which URL ----------------------------------------------------------------------

BOTH = {
    "DATABASE_URL": "postgresql://app@server/dramatis",
    "DATABASE_POOLED_URL": "postgresql://app@pooler:6432/dramatis",
}


def test_servers_use_the_pooled_url_and_commands_the_direct_one():
    show = "from django.conf import settings; print(settings.DATABASES['default']['HOST'])"
    server = run_settings({**COMPLETE, **BOTH}, "DATABASES")
    assert '"HOST": "pooler"' in server.stdout
    command = manage(BOTH["DATABASE_URL"], "shell", "--no-imports", "-c", show, **BOTH)
    assert command.stdout.strip() == "server", command.stderr


def test_pooled_settings_have_no_startup_options_and_prepare_nothing():
    direct = config.build_database_config(BOTH["DATABASE_URL"], pool_size=2, statement_ms=5_000)
    pooled = config.build_pooled_config(
        BOTH["DATABASE_POOLED_URL"], direct, pool_size=2, prepares=False, password="words"
    )
    assert "options" not in pooled["OPTIONS"]
    assert pooled["OPTIONS"]["prepare_threshold"] is None
    assert pooled["PASSWORD"] == "words"
    assert pooled[DIRECT_KEY]["HOST"] == "server"
    assert "statement_timeout=5000" in pooled[DIRECT_KEY]["OPTIONS"]["options"]


def test_a_pooler_needs_postgresql():
    done = run_settings({**COMPLETE, **BOTH, "DATABASE_URL": "sqlite:////tmp/x"})
    assert "DATABASE_POOLED_URL requires PostgreSQL" in done.stderr


# --- workspace scope and limits ------------------------------------------------------------------------


def test_statements_and_cursors_see_their_own_workspace_only(pooled, committed):
    workspace = committed[1].workspace
    with workspace_scope.workspace_scope(workspace.pk):
        for _ in range(5):
            assert fetch_one(pooled, COUNT_SQL) == 1
            with pooled.chunked_cursor() as cursor:
                cursor.execute("SELECT slug FROM personas_agent")
                assert [slug for (slug,) in cursor.fetchall()] == ["pilot"]
        with pooled.cursor() as cursor:
            update = "UPDATE personas_agent SET slug = slug WHERE slug = %s"
            cursor.executemany(update, [["pilot"], ["digger"]])
            assert cursor.rowcount == 1
    with workspace_scope.no_workspace():
        assert fetch_one(pooled, COUNT_SQL) == 0
    assert list_left_scopes(pooled) == {""}


def list_left_scopes(wrapper) -> set[str]:
    """The scopes of the pooler's server connections outside of our transactions."""
    raw = psycopg.ClientCursor(wrapper.connection)
    return {scope or "" for _ in range(10) for (scope,) in raw.execute(SCOPE_SQL).fetchall()}


@pytest.mark.planted
def test_a_scope_of_the_session_is_found(pooled, committed, monkeypatch):
    monkeypatch.setattr(
        rls_cursor, "get_scope_statement", lambda: f"SET dramatis.workspace = {committed[1].workspace.pk}"
    )
    with pytest.raises(AssertionError):
        test_statements_and_cursors_see_their_own_workspace_only(pooled, committed)
    psycopg.ClientCursor(pooled.connection).execute("DISCARD ALL")


def test_a_cursor_outside_of_a_transaction_has_a_direct_connection_that_is_closed_with_it(pooled):
    first = Agent.unscoped.using("default").order_by("pk").values_list("slug")
    with pooled.chunked_cursor() as cursor:
        raw = cursor.connection
        cursor.execute(str(first.query))
        assert cursor.fetchmany(1) == [("pilot",)]
        assert raw.info.host != pooled.connection.info.host
        assert cursor.fetchmany(1) == [("digger",)]
    assert raw.closed


def test_the_role_brings_the_limits_that_a_pooler_does_not_pass_on(pooled):
    assert fetch_one(pooled, "SHOW statement_timeout") == "5s"
    assert fetch_one(pooled, "SHOW lock_timeout") == "2s"
    assert fetch_one(pooled, "SHOW idle_in_transaction_session_timeout") == "30s"


# --- the ledger connection -----------------------------------------------------------------------------


@pytest.mark.parametrize("prepares", [False, True])
def test_fetches_are_written_through_the_pooler(prepares, pooler, stage, monkeypatch):
    """Also if the settings say wrongly that this pooler supports prepared statements."""
    use_for_ledger(monkeypatch, pooled_settings(pooler, prepares=prepares))
    assert at_once(8, lambda _: [stage.fetch() for _ in range(5)]) == []
    assert LedgerEntry.objects.in_workspace(stage.workspace).count() == 40


def test_an_invalid_statement_leaves_the_pooled_connection_usable(pooler, stage, monkeypatch):
    use_for_ledger(monkeypatch, pooled_settings(pooler))
    with closing(ledger_connection.open_ledger_connection()) as opened:
        assert isinstance(opened, ledger_connection.PooledLedgerConnection)
        with pytest.raises(ledger_connection.LedgerWriteError, match="division by zero"):
            opened.run("SELECT 1 / (%s)::int, ''", "0")
        assert opened.run("SELECT (%s)::int, current_setting('dramatis.workspace')", "7") == [(7, "all")]
    with closing(psycopg.connect(pooler.url(connection.settings_dict["NAME"]), autocommit=True)) as other:
        scopes = [other.execute(SCOPE_SQL, prepare=False).fetchall() for _ in range(10)]
        assert {scope or "" for ((scope,),) in scopes} == {""}


def run_two_statements(first, second) -> list[list[tuple[int, str]]]:
    """Let two clients prepare different statements in turn; return what each of them gets."""
    one, two = "SELECT (%s)::int, 'one'", "SELECT (%s)::int, 'two'"
    results: list[list[tuple[int, str]]] = [[], []]
    for number in range(6):
        results[0] += first.run(one, str(number))
        results[1] += second.run(two, str(number))
    return results


def test_statements_of_two_clients_are_not_confused(pooler, stage, monkeypatch):
    """With the direct form behind a pooler, which is a mistake of the operator."""
    with run_pgbouncer(
        os.environ["DATABASE_URL"], pooler.role, default_pool_size="1", ignore_startup_parameters="options"
    ) as other:
        values = {**pooled_settings(other), DIRECT_KEY: None}
        monkeypatch.setattr(ledger_connection.PostgresLedgerConnection, "_require_scope", lambda _: None)
        use_for_ledger(monkeypatch, values)
        first, second = (ledger_connection.open_ledger_connection() for _ in range(2))
        with closing(first), closing(second):
            results = run_two_statements(first, second)
    assert results == [[(number, word) for number in range(6)] for word in ("one", "two")]


@pytest.mark.planted
def test_statements_named_by_their_order_are_found(pooler, stage, monkeypatch):
    monkeypatch.setattr(ledger_connection, "build_statement_name", lambda sql: b"ledger0")
    # As before: a name that exists is taken for our own statement.
    monkeypatch.setattr(ledger_connection, "UNPREPARED_SQLSTATES", ("26000",))
    prepare = ledger_connection.PostgresLedgerConnection._prepare

    def ignore_existing(self, sql):
        try:
            return prepare(self, sql)
        except ledger_connection.LedgerWriteError:
            self._statement_names[sql] = b"ledger0"
            return b"ledger0"

    monkeypatch.setattr(ledger_connection.PostgresLedgerConnection, "_prepare", ignore_existing)
    with pytest.raises(AssertionError):
        test_statements_of_two_clients_are_not_confused(pooler, stage, monkeypatch)


def test_a_connection_without_its_scope_names_the_cause(pooler, stage, monkeypatch):
    """PgBouncer drops the startup options, and DATABASE_POOLED_URL is not set."""
    with run_pgbouncer(os.environ["DATABASE_URL"], pooler.role, ignore_startup_parameters="options") as other:
        use_for_ledger(monkeypatch, {**pooled_settings(other), DIRECT_KEY: None})
        with structlog.testing.capture_logs() as logs, pytest.raises(ServingUnavailable):
            stage.fetch()
    (reason,) = [entry["reason"] for entry in logs if entry["event"] == "ledger_write_failed"]
    assert "no workspace scope" in reason
    assert "DATABASE_POOLED_URL" in reason


# --- create_db_role and the doctor ---------------------------------------------------------------------


@pytest.mark.django_db
def test_the_command_sets_the_limits_of_the_role():
    role = f"app_limits_{os.getpid()}"
    call_command("create_db_role", role, "--statement-ms", "7000")
    assert get_role_settings(role) == {
        "statement_timeout": "7000",
        "lock_timeout": "2000",
        "idle_in_transaction_session_timeout": "30000",
    }
    call_command("create_db_role", role)
    assert get_role_settings(role)["statement_timeout"] == "5000"


@pytest.mark.django_db
def test_limits_that_may_not_be_altered_are_reported():
    role, owner = f"app_limits_{os.getpid()}", f"owner_{os.getpid()}"
    call_command("create_db_role", role)
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {owner}; SET LOCAL ROLE {owner}")
    assert set_role_limits(role, 5_000)
    assert not set_role_limits(role, 6_000)


def doctor(settings, values: dict | None) -> list[tuple[str, str]]:
    settings.DATABASE_POOLED = values
    return [(finding.state.value, finding.message) for finding in check_pooler()]


def test_the_doctor_compares_both_urls(pooler, committed, settings, monkeypatch):
    values = pooled_settings(pooler)
    assert doctor(settings, None) == []
    ((state, message),) = doctor(settings, values)
    assert (state, pooler.role in message) == ("ok", True)
    ((state, message),) = doctor(settings, {**values, "NAME": "postgres"})
    assert (state, "different database" in message) == ("fail", True)
    ((state, message),) = doctor(settings, {**values, "PORT": "1"})
    assert (state, "does not respond" in message) == ("fail", True)
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", dict(connection.settings_dict["OPTIONS"]))
    for name, value in pooler.settings().items():
        monkeypatch.setitem(connection.settings_dict, name, value)
    # DATABASE_URL leads to the pooler: it refuses `options`, or drops them without an error.
    assert doctor(settings, None) == [("fail", "DATABASE_URL points to a pooler.")]
    del connection.settings_dict["OPTIONS"]["options"]
    assert doctor(settings, None) == [("fail", "DATABASE_URL points to a pooler.")]


def test_the_doctor_reports_a_role_without_limits(pooler, committed, settings):
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER ROLE {pooler.role} IN DATABASE {connection.settings_dict['NAME']} RESET ALL")
    pooler.console("RECONNECT")
    try:
        ((state, message),) = doctor(settings, pooled_settings(pooler))
        assert (state, "has no statement_timeout, lock_timeout" in message) == ("warn", True)
    finally:
        set_role_limits(pooler.role, 5_000)
        pooler.console("RECONNECT")


def test_options_are_refused_by_the_example(pooler):
    name = connection.settings_dict["NAME"]
    with pytest.raises((psycopg.OperationalError, OperationalError), match="unsupported startup parameter"):
        psycopg.connect(pooler.url(name), options="-c statement_timeout=5000")

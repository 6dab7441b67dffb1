"""Monthly partitions of the ledger: storage of rows, partition pruning, triggers, creation and removal."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from core.db.workspace_scope import ALL_WORKSPACES, SCOPE_SETTING
from personas.api_keys.services import create_key
from project.doctor import datastores
from project.doctor.results import FindingState
from prompts.evidence.ledger import blocks, partitions
from prompts.evidence.ledger.blocks import seal_ledger
from prompts.evidence.ledger.partitions import (
    APPEND_ONLY_TRIGGER,
    DEFAULT_PARTITION,
    LEDGER_TABLE,
    add_months,
    build_month_partition,
    create_partitions,
    drop_empty_partitions,
    get_month_start,
    list_partitions,
    list_unprotected_partitions,
)
from prompts.evidence.ledger.retention import expire_blocks, subtract_months
from prompts.evidence.ledger.selectors import LedgerFilter, get_ledger_page
from prompts.evidence.replay.selectors import list_fetches_around
from prompts.models import LedgerEntry
from prompts.studio.fleet.bot_activity import get_hourly_chart
from prompts.tasks import maintain_partitions_job
from tests.factories import BY
from tests.prompts.serving.serving_stage import (
    Stage,
    fetch,
    insert_rows,
    ledger_verdict,
    make_stage,
)
from tests.shared_cast import (  # noqa: F401  # fixtures
    SharedCast,
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_elsewhere,
    shared_mallory,
    shared_props,
    shared_workspace,
)

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite keeps its one table"),
]
NOON = datetime(2031, 5, 15, 12, tzinfo=UTC)
# A partition without a start, for the rows of all early months.
FIRST_PARTITION = f"{LEDGER_TABLE}_before"
# Of the real month, for which the migrations created partitions.
MIDDLE_OF_MONTH = get_month_start(timezone.now()) + timedelta(days=14, hours=12)


@pytest.fixture(autouse=True)
def in_the_middle_of_a_month() -> Iterator[None]:
    """No month ends during a test."""
    with time_machine.travel(MIDDLE_OF_MONTH):
        yield


def set_stage(shared: SharedCast) -> Stage:
    with time_machine.travel(MIDDLE_OF_MONTH):
        # The database may be a copy of an older one.
        drop_empty_partitions()
        create_partitions()
        return make_stage(shared.workspace)


@pytest.fixture
def stage(props: Stage) -> Stage:
    return props


def execute_sql(*statements: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def row_partitions() -> list[str]:
    """Return the partition of each row, in id order."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT tableoid::regclass::text FROM {LEDGER_TABLE} ORDER BY id")  # noqa: S608  # our own name
        return [name for (name,) in cursor.fetchall()]


def names() -> set[str]:
    return {partition.name for partition in list_partitions()}


def name_of(at: datetime) -> str:
    return build_month_partition(get_month_start(at)).name


def make_past(months: int) -> None:
    """Create partitions of past months."""
    now = timezone.now()
    for back in range(1, months + 1):
        partitions.create_month_partition(add_months(get_month_start(now), -back), now)


def query_value(sql: str):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()[0]


# --- where rows are stored -----------------------------------------------------------------------------


def test_a_row_is_stored_in_the_partition_of_its_month(stage):
    now = timezone.now()
    stage.fetch()
    insert_rows(
        stage,
        [
            add_months(get_month_start(now), 2) - timedelta(microseconds=1),
            add_months(get_month_start(now), 2),
        ],
    )
    assert row_partitions() == [
        name_of(now),
        name_of(add_months(get_month_start(now))),
        name_of(add_months(get_month_start(now), 2)),
    ]
    assert ledger_verdict(stage.workspace).first is None


def test_a_row_without_a_monthly_partition_is_written_to_the_default_one(stage):
    for at in (NOON, datetime(2001, 2, 3, tzinfo=UTC)):
        with time_machine.travel(at, tick=False):
            _, secret = create_key(stage.workspace, f"Of {at:%Y}", {}, by=BY)
            assert fetch(secret).status == 200
    assert row_partitions() == [DEFAULT_PARTITION, DEFAULT_PARTITION]
    assert datastores.check_ledger_months().state == FindingState.WARN
    assert ledger_verdict(stage.workspace).first is None


def test_rows_are_moved_when_their_monthly_partition_is_created(stage):
    insert_rows(stage, [NOON, NOON + timedelta(days=1), add_months(get_month_start(NOON)), timezone.now()])
    before = list(LedgerEntry.objects.in_workspace(stage.workspace).order_by("pk").values())
    assert create_partitions() == [name_of(NOON), name_of(add_months(get_month_start(NOON)))]
    assert row_partitions()[1:4] == [name_of(NOON), name_of(NOON), name_of(add_months(get_month_start(NOON)))]
    assert list(LedgerEntry.objects.in_workspace(stage.workspace).order_by("pk").values()) == before
    assert ledger_verdict(stage.workspace).first is None
    assert list_unprotected_partitions() == []
    assert datastores.check_ledger_months().state == FindingState.OK
    assert create_partitions() == []


def test_many_rows_of_the_current_month_are_moved_after_its_end(stage, monkeypatch):
    monkeypatch.setattr(partitions, "MAX_MOVED_ROWS", 2)
    insert_rows(stage, [NOON] * 3)
    with time_machine.travel(NOON):
        assert create_partitions() == [
            name_of(add_months(get_month_start(NOON))),
            name_of(add_months(get_month_start(NOON), 2)),
        ]
    assert row_partitions()[1:] == [DEFAULT_PARTITION] * 3
    assert name_of(NOON) in create_partitions(add_months(get_month_start(NOON)))
    assert row_partitions()[1:] == [name_of(NOON)] * 3


def test_months_are_utc_in_any_session_timezone(stage):
    insert_rows(stage, [add_months(get_month_start(NOON)) - timedelta(microseconds=1)])
    execute_sql("SET LOCAL TimeZone = 'Asia/Kolkata'")
    assert create_partitions() == [name_of(NOON)]
    assert create_partitions() == []
    execute_sql("SET LOCAL TimeZone = 'UTC'")
    assert build_month_partition(get_month_start(NOON)) in list_partitions()
    assert row_partitions()[1] == name_of(NOON)


def test_ids_are_consecutive_over_all_partitions(stage):
    insert_rows(stage, [NOON, timezone.now(), NOON])
    row_ids = [row.pk for row in stage.rows]
    assert row_ids == list(range(row_ids[0], row_ids[0] + 4))


# --- scheduled job -------------------------------------------------------------------------------------


def test_the_job_creates_this_month_and_two_more(stage):
    with time_machine.travel(NOON, tick=False):
        maintain_partitions_job()
        assert {name_of(add_months(get_month_start(NOON), ahead)) for ahead in range(3)} <= names()
        assert create_partitions() == []


def test_a_partition_that_cannot_be_created_does_not_stop_the_others(stage):
    with time_machine.travel(NOON, tick=False):
        execute_sql(f"CREATE TABLE {name_of(NOON)} (in_the_way int)")
        assert create_partitions() == [
            name_of(add_months(get_month_start(NOON))),
            name_of(add_months(get_month_start(NOON), 2)),
        ]


# --- partition pruning ---------------------------------------------------------------------------------


def scanned_partitions(plan: str) -> set[str]:
    return {name for name in names() if f"{name} " in f"{plan} ".replace("\n", " ")}


def explain_last(queries) -> str:
    """Return the query plan of the last query on the ledger."""
    ledger_queries = [query["sql"] for query in queries if LEDGER_TABLE in query["sql"]]
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + ledger_queries[-1].replace("%", "%%"))
        return "\n".join(line for (line,) in cursor.fetchall())


def test_a_query_with_a_time_range_scans_its_partitions_only(stage, django_assert_max_num_queries):
    make_past(12)
    now = timezone.now()
    stage.fetch()
    filters = LedgerFilter(since=subtract_months(now, 2), until=subtract_months(now, 1))
    with django_assert_max_num_queries(9) as listed:
        get_ledger_page(stage.workspace, filters)
    scanned = scanned_partitions(explain_last(listed.captured_queries))
    assert scanned <= {name_of(subtract_months(now, back)) for back in (1, 2)}
    assert scanned
    with django_assert_max_num_queries(9) as charted:
        get_hourly_chart(stage.workspace)
    scanned = scanned_partitions(explain_last(charted.captured_queries))
    assert name_of(now) in scanned
    assert name_of(subtract_months(now, 3)) not in scanned
    with django_assert_max_num_queries(9) as around:
        list_fetches_around(stage.prompt, subtract_months(now, 11))
    scanned = scanned_partitions(explain_last(around.captured_queries))
    assert name_of(subtract_months(now, 11)) in scanned
    assert name_of(subtract_months(now, 3)) not in scanned


@pytest.mark.planted
def test_a_query_without_a_time_range_scans_all_partitions(stage, django_assert_max_num_queries):
    make_past(3)
    with django_assert_max_num_queries(9) as listed:
        get_ledger_page(stage.workspace, LedgerFilter())
    assert scanned_partitions(explain_last(listed.captured_queries)) == names()


# --- triggers ------------------------------------------------------------------------------------------


def refused(statement: str) -> bool:
    try:
        execute_sql(statement)
    except DatabaseError as error:
        return "only grows" in str(error)
    return False


def rewritable(tables: set[str]) -> list[str]:
    """List the statements that the database allows on these tables, each of which has rows."""
    templates = ("UPDATE {} SET size = 1", "UPDATE {} SET at = now()", "DELETE FROM {}", "TRUNCATE {}")
    return [
        statement
        for table in sorted(tables)
        for template in templates
        if not refused(statement := template.format(table))
    ]


def fill_every_part(stage: Stage) -> None:
    """Insert rows into a partition without a start, monthly partitions and the default one."""
    if FIRST_PARTITION not in names():
        execute_sql(f"SELECT make_ledger_part('{FIRST_PARTITION}', NULL, '2020-01-01 00:00Z')")
    partitions.create_month_partition(get_month_start(NOON), timezone.now())
    for partition in list_partitions():
        inside = partition.since or (partition.until or NOON) - timedelta(days=1)
        insert_rows(stage, [datetime(2040, 1, 1, tzinfo=UTC) if partition.is_default else inside])
    assert set(row_partitions()) == names()


def test_no_row_of_any_partition_is_changed_and_no_partition_is_truncated(stage):
    fill_every_part(stage)
    assert rewritable(names() | {LEDGER_TABLE}) == []
    assert list_unprotected_partitions() == []


@pytest.mark.planted
def test_a_partition_without_its_trigger_is_found(stage):
    fill_every_part(stage)
    name = name_of(timezone.now())
    execute_sql(f"ALTER TABLE {name} DISABLE TRIGGER {APPEND_ONLY_TRIGGER}")
    assert list_unprotected_partitions() == [name]
    assert rewritable({name})
    assert datastores.check_ledger_months().state == FindingState.FAIL
    execute_sql(f"ALTER TABLE {name} ENABLE TRIGGER {APPEND_ONLY_TRIGGER}")
    execute_sql(
        f"CREATE TABLE by_hand PARTITION OF {LEDGER_TABLE} "
        "FOR VALUES FROM ('2050-01-01 00:00Z') TO (MAXVALUE)",
        "ALTER TABLE by_hand ENABLE ROW LEVEL SECURITY",
    )
    assert list_unprotected_partitions() == ["by_hand"]
    assert "by_hand" in datastores.check_ledger_months().message
    execute_sql("DROP TABLE by_hand", f"ALTER TABLE {DEFAULT_PARTITION} DISABLE ROW LEVEL SECURITY")
    assert list_unprotected_partitions() == [DEFAULT_PARTITION]


def test_a_missing_partition_is_reported_in_advance(stage):
    with time_machine.travel(NOON):
        finding = datastores.check_ledger_months()
    assert (finding.state, finding.message) == (FindingState.WARN, "There is no table for 2031-06.")


# --- removal -------------------------------------------------------------------------------------------


def test_a_past_partition_is_dropped_when_its_rows_have_expired(stage, monkeypatch):
    monkeypatch.setattr(blocks, "SETTLE_DELAY", -blocks.SETTLE_DELAY)
    now = timezone.now()
    old, young = subtract_months(now, 36), subtract_months(now, 3)
    for at in (old, young):
        partitions.create_month_partition(get_month_start(at), now)
        with time_machine.travel(at, tick=False):
            _, secret = create_key(stage.workspace, f"Of {at:%Y-%m}", {}, by=BY)
            fetch(secret, cache=stage.cache)
            seal_ledger(stage.workspace.pk)
    assert drop_empty_partitions() == []
    assert expire_blocks(stage.workspace.pk) == 1
    assert drop_empty_partitions() == [name_of(old)]
    assert name_of(old) not in names()
    assert name_of(young) in names()
    assert ledger_verdict(stage.workspace).first is None


def test_neither_a_recent_partition_nor_one_with_a_late_row_is_dropped(stage):
    make_past(3)
    now = timezone.now()
    late = build_month_partition(add_months(get_month_start(now), -2))
    assert late.since is not None
    insert_rows(stage, [late.since])
    assert drop_empty_partitions() == [name_of(add_months(get_month_start(now), -3))]
    assert not partitions.drop_partition_if_empty(late)
    assert name_of(add_months(get_month_start(now), -1)) in names()
    assert DEFAULT_PARTITION in names()


@pytest.fixture
def clerk(db) -> str:
    """A database role that owns nothing, as the application may use; it has privileges on new tables."""
    execute_sql(
        "CREATE ROLE clerk",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO clerk",
        "ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO clerk",
        "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO clerk",
        # The scope of a job, which is not set again because the connection began as the owner.
        f"SET LOCAL {SCOPE_SETTING} = '{ALL_WORKSPACES}'",
    )
    return "SET LOCAL ROLE clerk"


def test_a_role_without_ownership_creates_partitions_but_cannot_read_them_directly(stage, clerk):
    stage.fetch()
    insert_rows(stage, [NOON])
    execute_sql(f"SELECT make_ledger_part('{FIRST_PARTITION}', NULL, '2020-01-01 00:00Z')", clerk)
    assert create_partitions() == [name_of(NOON)]
    assert len(stage.rows) == 2
    assert stage.fetch().status == 200
    assert drop_empty_partitions() == [FIRST_PARTITION]
    for partition in list_partitions():
        assert query_value(f"SELECT count(*) FROM {partition.name}") == 0  # noqa: S608  # a table of ours
    assert not partitions.drop_partition_if_empty(build_month_partition(get_month_start(NOON)))
    assert datastores.check_ledger_months().state == FindingState.OK
    for statement in (
        f"DROP TABLE {DEFAULT_PARTITION}",
        f"ALTER TABLE {LEDGER_TABLE} DISABLE TRIGGER {APPEND_ONLY_TRIGGER}",
    ):
        with pytest.raises(DatabaseError, match="must be owner"):
            execute_sql(statement)

"""The ledger by month: every row finds a table, every table is guarded, and questions look at few of them."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from core.db.workspace_scope import ALL_WORKSPACES, SCOPE_SETTING
from personas.api_keys.services import create_key
from personas.models import Workspace
from project.doctor import datastores
from project.doctor.results import FindingState
from prompts.fleet.bot_activity import get_hourly_chart
from prompts.ledger import blocks, partitions
from prompts.ledger.blocks import seal_ledger
from prompts.ledger.partitions import (
    APPEND_ONLY_TRIGGER,
    DEFAULT_PARTITION,
    LEDGER_TABLE,
    LEGACY_PARTITION,
    add_months,
    build_month_partition,
    create_partitions,
    drop_empty_partitions,
    get_month_start,
    list_partitions,
    list_unprotected_partitions,
)
from prompts.ledger.retention import expire_blocks, subtract_months
from prompts.ledger.selectors import LedgerFilter, get_ledger_page
from prompts.models import LedgerEntry
from prompts.replay.selectors import list_fetches_around
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
    cast,
    shared_alice,
    shared_bob,
    shared_props,
    shared_workspace,
)

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite keeps its one table"),
]
NOON = datetime(2031, 5, 15, 12, tzinfo=UTC)


def set_stage(workspace: Workspace) -> Stage:
    create_partitions()
    return make_stage(workspace)


@pytest.fixture
def stage(props: Stage) -> Stage:
    return props


def by_hand(*statements: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def places() -> list[str]:
    """In which table each row lies, in the order of their ids."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT tableoid::regclass::text FROM {LEDGER_TABLE} ORDER BY id")  # noqa: S608  # our own name
        return [name for (name,) in cursor.fetchall()]


def names() -> set[str]:
    return {part.name for part in list_partitions()}


def name_of(at: datetime) -> str:
    return build_month_partition(get_month_start(at)).name


def make_past(months: int) -> None:
    """Tables of months that are over, made as rows of theirs would have them made."""
    now = timezone.now()
    for back in range(1, months + 1):
        partitions.create_month_partition(add_months(get_month_start(now), -back), now)


def answer(question: str):
    with connection.cursor() as cursor:
        cursor.execute(question)
        return cursor.fetchone()[0]


# --- where rows lie ------------------------------------------------------------------------------------


def test_a_row_lies_in_the_table_of_its_month(stage):
    now = timezone.now()
    stage.fetch()
    insert_rows(
        stage,
        [
            add_months(get_month_start(now), 2) - timedelta(microseconds=1),
            add_months(get_month_start(now), 2),
        ],
    )
    assert places() == [
        name_of(now),
        name_of(add_months(get_month_start(now))),
        name_of(add_months(get_month_start(now), 2)),
    ]
    assert ledger_verdict(stage.workspace).first is None


def test_a_row_of_any_other_time_is_written_all_the_same(stage):
    for moment in (NOON, datetime(2001, 2, 3, tzinfo=UTC)):
        with time_machine.travel(moment, tick=False):
            _, secret = create_key(stage.workspace, f"Of {moment:%Y}", {}, by=BY)
            assert fetch(secret).status == 200
    assert places() == [DEFAULT_PARTITION, DEFAULT_PARTITION]
    assert datastores.check_ledger_months().state == FindingState.WARN
    assert ledger_verdict(stage.workspace).first is None


def test_rows_without_a_month_are_moved_to_it_when_it_is_made(stage):
    insert_rows(stage, [NOON, NOON + timedelta(days=1), add_months(get_month_start(NOON)), timezone.now()])
    before = list(LedgerEntry.objects.in_workspace(stage.workspace).order_by("pk").values())
    assert create_partitions() == [name_of(NOON), name_of(add_months(get_month_start(NOON)))]
    assert places()[1:4] == [name_of(NOON), name_of(NOON), name_of(add_months(get_month_start(NOON)))]
    assert list(LedgerEntry.objects.in_workspace(stage.workspace).order_by("pk").values()) == before
    assert ledger_verdict(stage.workspace).first is None
    assert list_unprotected_partitions() == []
    assert datastores.check_ledger_months().state == FindingState.OK
    assert create_partitions() == []


def test_many_rows_of_a_month_in_use_wait_until_it_is_over(stage, monkeypatch):
    monkeypatch.setattr(partitions, "MAX_MOVED_ROWS", 2)
    insert_rows(stage, [NOON] * 3)
    with time_machine.travel(NOON):
        assert create_partitions() == [
            name_of(add_months(get_month_start(NOON))),
            name_of(add_months(get_month_start(NOON), 2)),
        ]
    assert places()[1:] == [DEFAULT_PARTITION] * 3
    assert name_of(NOON) in create_partitions(add_months(get_month_start(NOON)))
    assert places()[1:] == [name_of(NOON)] * 3


def test_months_are_those_of_utc_whatever_a_session_is_set_to(stage):
    insert_rows(stage, [add_months(get_month_start(NOON)) - timedelta(microseconds=1)])
    by_hand("SET LOCAL TimeZone = 'Asia/Kolkata'")
    assert create_partitions() == [name_of(NOON)]
    assert create_partitions() == []
    by_hand("SET LOCAL TimeZone = 'UTC'")
    assert build_month_partition(get_month_start(NOON)) in list_partitions()
    assert places()[1] == name_of(NOON)


def test_ids_go_on_in_one_order_over_all_tables(stage):
    insert_rows(stage, [NOON, timezone.now(), NOON])
    found = [row.pk for row in stage.rows]
    assert found == list(range(found[0], found[0] + 4))


# --- the clock -----------------------------------------------------------------------------------------


def test_the_clock_makes_this_month_and_two_more(stage):
    with time_machine.travel(NOON, tick=False):
        maintain_partitions_job()
        assert {name_of(add_months(get_month_start(NOON), ahead)) for ahead in range(3)} <= names()
        assert create_partitions() == []


def test_a_month_that_cannot_be_made_keeps_no_other_from_it(stage):
    with time_machine.travel(NOON, tick=False):
        by_hand(f"CREATE TABLE {name_of(NOON)} (in_the_way int)")
        assert create_partitions() == [
            name_of(add_months(get_month_start(NOON))),
            name_of(add_months(get_month_start(NOON), 2)),
        ]


# --- what is looked at ---------------------------------------------------------------------------------


def looked_at(explained: str) -> set[str]:
    return {name for name in names() if f"{name} " in f"{explained} ".replace("\n", " ")}


def explained(queries) -> str:
    """The plan of the last question of the ledger that was asked."""
    asked = [query["sql"] for query in queries if LEDGER_TABLE in query["sql"]]
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + asked[-1].replace("%", "%%"))
        return "\n".join(line for (line,) in cursor.fetchall())


def test_a_question_with_a_time_looks_at_its_months_only(stage, django_assert_max_num_queries):
    make_past(12)
    now = timezone.now()
    stage.fetch()
    asked = LedgerFilter(since=subtract_months(now, 2), until=subtract_months(now, 1))
    with django_assert_max_num_queries(9) as listed:
        get_ledger_page(stage.workspace, asked)
    seen = looked_at(explained(listed.captured_queries))
    assert seen <= {name_of(subtract_months(now, back)) for back in (1, 2)}
    assert seen
    with django_assert_max_num_queries(9) as charted:
        get_hourly_chart(stage.workspace)
    seen = looked_at(explained(charted.captured_queries))
    assert name_of(now) in seen
    assert name_of(subtract_months(now, 3)) not in seen
    with django_assert_max_num_queries(9) as around:
        list_fetches_around(stage.prompt, subtract_months(now, 11))
    seen = looked_at(explained(around.captured_queries))
    assert name_of(subtract_months(now, 11)) in seen
    assert name_of(subtract_months(now, 3)) not in seen


@pytest.mark.planted
def test_a_question_without_a_time_looks_at_all_of_them(stage, django_assert_max_num_queries):
    make_past(3)
    with django_assert_max_num_queries(9) as listed:
        get_ledger_page(stage.workspace, LedgerFilter())
    assert looked_at(explained(listed.captured_queries)) == names()


# --- guards --------------------------------------------------------------------------------------------


def refused(statement: str) -> bool:
    try:
        by_hand(statement)
    except DatabaseError as error:
        return "only grows" in str(error)
    return False


def rewritable(tables: set[str]) -> list[str]:
    """What the database lets somebody do to these tables, each of which has rows."""
    tried = ("UPDATE {} SET size = 1", "UPDATE {} SET at = now()", "DELETE FROM {}", "TRUNCATE {}")
    return [
        statement
        for table in sorted(tables)
        for word in tried
        if not refused(statement := word.format(table))
    ]


def fill_every_part(stage: Stage) -> None:
    """A part that was there before, months made early and late, and the default."""
    if LEGACY_PARTITION not in names():
        by_hand(f"SELECT make_ledger_part('{LEGACY_PARTITION}', NULL, '2020-01-01 00:00Z')")
    partitions.create_month_partition(get_month_start(NOON), timezone.now())
    for part in list_partitions():
        inside = part.since or (part.until or NOON) - timedelta(days=1)
        insert_rows(stage, [datetime(2040, 1, 1, tzinfo=UTC) if part.is_default else inside])
    assert set(places()) == names()


def test_no_row_of_any_part_is_changed_and_no_part_is_emptied(stage):
    fill_every_part(stage)
    assert rewritable(names() | {LEDGER_TABLE}) == []
    assert list_unprotected_partitions() == []


@pytest.mark.planted
def test_a_part_without_its_guard_is_found(stage):
    fill_every_part(stage)
    name = name_of(timezone.now())
    by_hand(f"ALTER TABLE {name} DISABLE TRIGGER {APPEND_ONLY_TRIGGER}")
    assert list_unprotected_partitions() == [name]
    assert rewritable({name})
    assert datastores.check_ledger_months().state == FindingState.FAIL
    by_hand(f"ALTER TABLE {name} ENABLE TRIGGER {APPEND_ONLY_TRIGGER}")
    by_hand(
        f"CREATE TABLE by_hand PARTITION OF {LEDGER_TABLE} "
        "FOR VALUES FROM ('2050-01-01 00:00Z') TO (MAXVALUE)",
        "ALTER TABLE by_hand ENABLE ROW LEVEL SECURITY",
    )
    assert list_unprotected_partitions() == ["by_hand"]
    assert "by_hand" in datastores.check_ledger_months().message
    by_hand("DROP TABLE by_hand", f"ALTER TABLE {DEFAULT_PARTITION} DISABLE ROW LEVEL SECURITY")
    assert list_unprotected_partitions() == [DEFAULT_PARTITION]


def test_a_missing_month_is_told_in_time(stage):
    with time_machine.travel(NOON):
        found = datastores.check_ledger_months()
    assert (found.state, found.message) == (FindingState.WARN, "There is no table for 2031-06.")


# --- letting go ----------------------------------------------------------------------------------------


def test_a_month_is_dropped_when_it_is_over_and_its_rows_were_rolled_off(stage, monkeypatch):
    monkeypatch.setattr(blocks, "SETTLE_DELAY", -blocks.SETTLE_DELAY)
    now = timezone.now()
    old, young = subtract_months(now, 36), subtract_months(now, 3)
    for moment in (old, young):
        partitions.create_month_partition(get_month_start(moment), now)
        with time_machine.travel(moment, tick=False):
            _, secret = create_key(stage.workspace, f"Of {moment:%Y-%m}", {}, by=BY)
            fetch(secret, recall=stage.recall)
            seal_ledger(stage.workspace.pk)
    assert drop_empty_partitions() == []
    assert expire_blocks(stage.workspace.pk) == 1
    assert drop_empty_partitions() == [name_of(old)]
    assert name_of(old) not in names()
    assert name_of(young) in names()
    assert ledger_verdict(stage.workspace).first is None


def test_neither_a_young_month_nor_one_with_a_late_row_is_dropped(stage):
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
    """A role that owns nothing, as the product may run; new tables are opened to it by default."""
    by_hand(
        "CREATE ROLE clerk",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO clerk",
        "ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO clerk",
        "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO clerk",
        # As a job says; the connection was looked at when it was the owner's.
        f"SET LOCAL {SCOPE_SETTING} = '{ALL_WORKSPACES}'",
    )
    return "SET LOCAL ROLE clerk"


def test_who_owns_nothing_has_months_made_and_reads_no_part_past_the_ledger(stage, clerk):
    stage.fetch()
    insert_rows(stage, [NOON])
    by_hand(f"SELECT make_ledger_part('{LEGACY_PARTITION}', NULL, '2020-01-01 00:00Z')", clerk)
    assert create_partitions() == [name_of(NOON)]
    assert len(stage.rows) == 2
    assert stage.fetch().status == 200
    assert drop_empty_partitions() == [LEGACY_PARTITION]
    for part in list_partitions():
        assert answer(f"SELECT count(*) FROM {part.name}") == 0  # noqa: S608  # a table of ours
    assert not partitions.drop_partition_if_empty(build_month_partition(get_month_start(NOON)))
    assert datastores.check_ledger_months().state == FindingState.OK
    for statement in (
        f"DROP TABLE {DEFAULT_PARTITION}",
        f"ALTER TABLE {LEDGER_TABLE} DISABLE TRIGGER {APPEND_ONLY_TRIGGER}",
    ):
        with pytest.raises(DatabaseError, match="must be owner"):
            by_hand(statement)

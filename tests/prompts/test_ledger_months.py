"""The ledger by month: every row finds a table, every table is guarded, and questions look at few of them."""

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
import time_machine
from django.db import DatabaseError, connection, connections, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.models import Index
from django.utils import timezone

from personas.online import AddIndexOnline
from personas.services.keys import create_key
from personas.walls import EVERYWHERE, SETTING
from project.doctor import stores
from project.doctor.findings import State
from prompts.fleet.serving_chart import served_per_hour
from prompts.ledger_by_month import BOUND, ByMonth, Editor
from prompts.ledger_tables import (
    BEFORE,
    DEFAULT,
    LEDGER,
    ROW_GUARD,
    is_by_month,
    later,
    ledger_parts,
    month_of,
    part_of,
    unguarded_parts,
)
from prompts.models import LedgerEntry
from prompts.selectors_ledger import LedgerFilter, ledger_page
from prompts.services import ledger_months, sealing
from prompts.services.ledger_months import drop_empty_months, make_months
from prompts.services.retention import months_before, roll_off
from prompts.services.sealing import seal_workspace
from prompts.tasks import keep_ledger_months_job
from prompts.time_machine import fetches_around
from tests.emptying import empty
from tests.factories import BY
from tests.prompts.serving_stage import (
    Stage,
    fetch,
    insert_rows,
    ledger_verdict,
    make_stage,
    statements_fail_at,
)

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite keeps its one table"),
]
NOON = datetime(2031, 5, 15, 12, tzinfo=UTC)


@pytest.fixture
def stage(workspace) -> Stage:
    make_months()
    return make_stage(workspace)


def by_hand(*statements: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def places() -> list[str]:
    """In which table each row lies, in the order of their ids."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT tableoid::regclass::text FROM {LEDGER} ORDER BY id")  # noqa: S608  # our own name
        return [name for (name,) in cursor.fetchall()]


def names() -> set[str]:
    return {part.name for part in ledger_parts()}


def name_of(at: datetime) -> str:
    return part_of(month_of(at)).name


def make_past(months: int) -> None:
    """Tables of months that are over, made as rows of theirs would have them made."""
    now = timezone.now()
    for back in range(1, months + 1):
        ledger_months.make_month(later(month_of(now), -back), now)


# --- where rows lie ------------------------------------------------------------------------------------


def test_a_row_lies_in_the_table_of_its_month(stage):
    now = timezone.now()
    stage.fetch()
    insert_rows(stage, [later(month_of(now), 2) - timedelta(microseconds=1), later(month_of(now), 2)])
    assert places() == [name_of(now), name_of(later(month_of(now))), name_of(later(month_of(now), 2))]
    assert ledger_verdict(stage.workspace).first is None


def test_a_row_of_any_other_time_is_written_all_the_same(stage):
    for moment in (NOON, datetime(2001, 2, 3, tzinfo=UTC)):
        with time_machine.travel(moment, tick=False):
            _, secret = create_key(stage.workspace, f"Of {moment:%Y}", {}, by=BY)
            assert fetch(secret).status == 200
    assert places() == [DEFAULT, DEFAULT]
    assert stores.ledger_months().state == State.WARN
    assert ledger_verdict(stage.workspace).first is None


def test_rows_without_a_month_are_moved_to_it_when_it_is_made(stage):
    insert_rows(stage, [NOON, NOON + timedelta(days=1), later(month_of(NOON)), timezone.now()])
    before = list(LedgerEntry.objects.in_workspace(stage.workspace).order_by("pk").values())
    assert make_months() == [name_of(NOON), name_of(later(month_of(NOON)))]
    assert places()[1:4] == [name_of(NOON), name_of(NOON), name_of(later(month_of(NOON)))]
    assert list(LedgerEntry.objects.in_workspace(stage.workspace).order_by("pk").values()) == before
    assert ledger_verdict(stage.workspace).first is None
    assert unguarded_parts() == []
    assert stores.ledger_months().state == State.OK
    assert make_months() == []


def test_many_rows_of_a_month_in_use_wait_until_it_is_over(stage, monkeypatch):
    monkeypatch.setattr(ledger_months, "FEW_ROWS", 2)
    insert_rows(stage, [NOON] * 3)
    with time_machine.travel(NOON):
        assert make_months() == [name_of(later(month_of(NOON))), name_of(later(month_of(NOON), 2))]
    assert places()[1:] == [DEFAULT] * 3
    assert name_of(NOON) in make_months(later(month_of(NOON)))
    assert places()[1:] == [name_of(NOON)] * 3


def test_months_are_those_of_utc_whatever_a_session_is_set_to(stage):
    insert_rows(stage, [later(month_of(NOON)) - timedelta(microseconds=1)])
    by_hand("SET LOCAL TimeZone = 'Asia/Kolkata'")
    assert make_months() == [name_of(NOON)]
    assert make_months() == []
    by_hand("SET LOCAL TimeZone = 'UTC'")
    assert part_of(month_of(NOON)) in ledger_parts()
    assert places()[1] == name_of(NOON)


def test_ids_go_on_in_one_order_over_all_tables(stage):
    insert_rows(stage, [NOON, timezone.now(), NOON])
    found = [row.pk for row in stage.rows]
    assert found == list(range(found[0], found[0] + 4))


# --- the clock -----------------------------------------------------------------------------------------


def test_the_clock_makes_this_month_and_two_more(stage):
    with time_machine.travel(NOON, tick=False):
        keep_ledger_months_job()
        assert {name_of(later(month_of(NOON), ahead)) for ahead in range(3)} <= names()
        assert make_months() == []


def test_a_month_that_cannot_be_made_keeps_no_other_from_it(stage):
    with time_machine.travel(NOON, tick=False):
        by_hand(f"CREATE TABLE {name_of(NOON)} (in_the_way int)")
        assert make_months() == [name_of(later(month_of(NOON))), name_of(later(month_of(NOON), 2))]


@pytest.mark.django_db(transaction=True)
def test_nobody_who_reads_or_writes_other_months_waits_while_one_is_made(stage):
    stage.fetch()
    with psycopg.connect(**other_connection()) as other, transaction.atomic():
        assert ledger_months.make_month(month_of(NOON), timezone.now())
        other.execute("SET lock_timeout = '300ms'")
        assert other.execute(f"SELECT count(*) FROM {name_of(timezone.now())}").fetchone() == (1,)  # noqa: S608  # ours
        assert other.execute(copying(timezone.now(), name_of(timezone.now()))).rowcount == 1
        other.rollback()
        transaction.set_rollback(True)


def other_connection() -> dict[str, Any]:
    own = {"cursor_factory", "context", "prepare_threshold"}
    return {name: value for name, value in connection.get_connection_params().items() if name not in own}


def copying(at: datetime, table: str) -> str:
    """A statement that writes a row like the first, of another time."""
    columns = [str(field.column) for field in LedgerEntry._meta.concrete_fields if field.name != "id"]
    taken = ", ".join(f"'{at.isoformat()}'" if name == "at" else name for name in columns)
    return f"INSERT INTO {LEDGER} ({', '.join(columns)}) SELECT {taken} FROM {table} LIMIT 1"  # noqa: S608  # ours


# --- what is looked at ---------------------------------------------------------------------------------


def looked_at(explained: str) -> set[str]:
    return {name for name in names() if f"{name} " in f"{explained} ".replace("\n", " ")}


def explained(queries) -> str:
    """The plan of the last question of the ledger that was asked."""
    asked = [query["sql"] for query in queries if LEDGER in query["sql"]]
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + asked[-1].replace("%", "%%"))
        return "\n".join(line for (line,) in cursor.fetchall())


def test_a_question_with_a_time_looks_at_its_months_only(stage, django_assert_max_num_queries):
    make_past(12)
    now = timezone.now()
    stage.fetch()
    asked = LedgerFilter(since=months_before(now, 2), until=months_before(now, 1))
    with django_assert_max_num_queries(9) as listed:
        ledger_page(stage.workspace, asked)
    seen = looked_at(explained(listed.captured_queries))
    assert seen <= {name_of(months_before(now, back)) for back in (1, 2)}
    assert seen
    with django_assert_max_num_queries(9) as charted:
        served_per_hour(stage.workspace)
    seen = looked_at(explained(charted.captured_queries))
    assert name_of(now) in seen
    assert name_of(months_before(now, 3)) not in seen
    with django_assert_max_num_queries(9) as around:
        fetches_around(stage.prompt, months_before(now, 11))
    seen = looked_at(explained(around.captured_queries))
    assert name_of(months_before(now, 11)) in seen
    assert name_of(months_before(now, 3)) not in seen


@pytest.mark.planted
def test_a_question_without_a_time_looks_at_all_of_them(stage, django_assert_max_num_queries):
    make_past(3)
    with django_assert_max_num_queries(9) as listed:
        ledger_page(stage.workspace, LedgerFilter())
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
    if BEFORE not in names():
        by_hand(f"SELECT make_ledger_part('{BEFORE}', NULL, '2020-01-01 00:00Z')")
    ledger_months.make_month(month_of(NOON), timezone.now())
    for part in ledger_parts():
        inside = part.since or (part.until or NOON) - timedelta(days=1)
        insert_rows(stage, [datetime(2040, 1, 1, tzinfo=UTC) if part.is_default else inside])
    assert set(places()) == names()


def test_no_row_of_any_part_is_changed_and_no_part_is_emptied(stage):
    fill_every_part(stage)
    assert rewritable(names() | {LEDGER}) == []
    assert unguarded_parts() == []


@pytest.mark.planted
def test_a_part_without_its_guard_is_found(stage):
    fill_every_part(stage)
    name = name_of(timezone.now())
    by_hand(f"ALTER TABLE {name} DISABLE TRIGGER {ROW_GUARD}")
    assert unguarded_parts() == [name]
    assert rewritable({name})
    assert stores.ledger_months().state == State.FAIL
    by_hand(f"ALTER TABLE {name} ENABLE TRIGGER {ROW_GUARD}")
    by_hand(
        f"CREATE TABLE by_hand PARTITION OF {LEDGER} FOR VALUES FROM ('2050-01-01 00:00Z') TO (MAXVALUE)",
        "ALTER TABLE by_hand ENABLE ROW LEVEL SECURITY",
    )
    assert unguarded_parts() == ["by_hand"]
    assert "by_hand" in stores.ledger_months().words
    by_hand("DROP TABLE by_hand", f"ALTER TABLE {DEFAULT} DISABLE ROW LEVEL SECURITY")
    assert unguarded_parts() == [DEFAULT]


def test_a_missing_month_is_told_in_time(stage):
    with time_machine.travel(NOON):
        found = stores.ledger_months()
    assert (found.state, found.words) == (State.WARN, "There is no table for 2031-06.")


@pytest.mark.django_db(transaction=True)
def test_an_index_is_built_for_every_part_while_rows_are_written(stage):
    """As a later migration will; also after an attempt that was cut off."""
    state = MigrationLoader(None).project_state()
    step = AddIndexOnline("ledgerentry", Index(fields=["workspace", "-size"], name="made_up"))
    after = state.clone()
    step.state_forwards("prompts", after)
    try:
        for _ in range(2):
            with connection.schema_editor(atomic=False) as editor:
                step.database_forwards("prompts", editor, state, after)
            assert answer("SELECT indisvalid FROM pg_index WHERE indexrelid = 'made_up'::regclass")
        ledger_months.make_month(month_of(NOON), timezone.now())
        children = answer("SELECT count(*) FROM pg_inherits WHERE inhparent = 'made_up'::regclass")
        assert children == len(names())
    finally:
        by_hand("DROP INDEX made_up", f"DROP TABLE {name_of(NOON)}")


# --- letting go ----------------------------------------------------------------------------------------


def test_a_month_is_dropped_when_it_is_over_and_its_rows_were_rolled_off(stage, monkeypatch):
    monkeypatch.setattr(sealing, "QUIET", -sealing.QUIET)
    now = timezone.now()
    old, young = months_before(now, 36), months_before(now, 3)
    for moment in (old, young):
        ledger_months.make_month(month_of(moment), now)
        with time_machine.travel(moment, tick=False):
            _, secret = create_key(stage.workspace, f"Of {moment:%Y-%m}", {}, by=BY)
            fetch(secret, recall=stage.recall)
            seal_workspace(stage.workspace.pk)
    assert drop_empty_months() == []
    assert roll_off(stage.workspace.pk) == 1
    assert drop_empty_months() == [name_of(old)]
    assert name_of(old) not in names()
    assert name_of(young) in names()
    assert ledger_verdict(stage.workspace).first is None


def test_neither_a_young_month_nor_one_with_a_late_row_is_dropped(stage):
    make_past(3)
    now = timezone.now()
    late = part_of(later(month_of(now), -2))
    assert late.since is not None
    insert_rows(stage, [late.since])
    assert drop_empty_months() == [name_of(later(month_of(now), -3))]
    assert not ledger_months.drop_if_empty(late)
    assert name_of(later(month_of(now), -1)) in names()
    assert DEFAULT in names()


# --- there and back ------------------------------------------------------------------------------------


@pytest.fixture
def one_table(transactional_db) -> Iterator[None]:
    """The ledger as it was before there were months; afterwards as a new installation has it."""
    go_back()
    yield
    if is_by_month():
        go_back()
    empty([LEDGER])
    go_forward()
    make_months()


def go_forward() -> None:
    with connection.schema_editor(atomic=False) as editor:
        ByMonth().database_forwards("prompts", editor, None, None)


def go_back() -> None:
    with connection.schema_editor(atomic=False) as editor:
        ByMonth().database_backwards("prompts", editor, None, None)


def answer(question: str):
    with connection.cursor() as cursor:
        cursor.execute(question)
        return cursor.fetchone()[0]


def indexes() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE tablename = %s ORDER BY indexname", [LEDGER])
        return [said for (said,) in cursor.fetchall()]


def file_of(table: str) -> int:
    return int(answer(f"SELECT pg_relation_filenode('{table}')"))


@pytest.mark.django_db(transaction=True)
def test_the_ledger_is_laid_out_by_month_and_back_with_rows_on_both_sides(one_table, workspace):
    stage = make_stage(workspace)
    insert_rows(stage, [months_before(timezone.now(), 30), timezone.now()])
    file, kept, there = file_of(LEDGER), [row.seal for row in stage.rows], indexes()
    go_forward()
    assert is_by_month()
    assert make_months() == [name_of(later(month_of(timezone.now()), 2))]
    assert names() == {BEFORE, DEFAULT, name_of(later(month_of(timezone.now()), 2))}
    assert file_of(BEFORE) == file, "no row was copied"
    assert (places(), unguarded_parts()) == ([BEFORE] * 3, [])
    stage.fetch()
    insert_rows(stage, [NOON, later(month_of(timezone.now()), 2)])
    assert places()[3:] == [BEFORE, DEFAULT, name_of(later(month_of(timezone.now()), 2))]
    kept += [row.seal for row in stage.rows[3:]]
    assert rewritable({LEDGER, *names()}) == []
    go_back()
    assert not is_by_month()
    assert file_of(LEDGER) == file
    assert indexes() == there
    assert refused(f"DELETE FROM {LEDGER}")  # noqa: S608  # our own name
    stage.fetch()
    assert [row.seal for row in stage.rows[:-1]] == kept
    numbers = [row.pk for row in stage.rows]
    assert numbers == sorted(set(numbers))
    assert ledger_verdict(workspace).first is None
    go_forward()
    assert BEFORE in names()
    assert stage.fetch().status == 200
    assert len(stage.rows) == len(kept) + 2
    part = next(part for part in ledger_parts() if part.name == BEFORE)
    assert part.until == later(month_of(NOON)), "a clock far ahead is believed"


@pytest.mark.django_db(transaction=True)
def test_bots_are_served_while_the_ledger_is_laid_out(one_table, workspace):
    stage = make_stage(workspace)
    stage.fetch()
    seen, done = list[int](), threading.Event()

    def fetch_on() -> None:
        while not done.is_set():
            seen.append(stage.fetch().status)
        connections.close_all()

    bot = threading.Thread(target=fetch_on)
    bot.start()
    try:
        for verb in (go_forward, make_months, go_back, go_forward):
            time.sleep(0.1)
            verb()
    finally:
        time.sleep(0.1)
        done.set()
        bot.join(20)
    assert set(seen) == {200}
    assert len(stage.rows) == len(seen) + 1
    assert ledger_verdict(workspace).first is None


@pytest.mark.django_db(transaction=True)
def test_the_lock_is_held_for_no_look_at_rows(one_table, workspace):
    """The database says itself what it reads: the rows before that, and then only the empty default."""
    insert_rows(make_stage(workspace), [timezone.now()])
    said = heard_going_forward()
    assert tables_read(said) >= {LEDGER}
    locked = said[said.index(f"LOCK TABLE {LEDGER} IN ACCESS EXCLUSIVE MODE") :]
    assert tables_read(locked) == {DEFAULT}


@pytest.mark.planted
@pytest.mark.django_db(transaction=True)
def test_a_migration_that_reads_rows_under_its_lock_is_found(one_table, workspace, monkeypatch):
    insert_rows(make_stage(workspace), [timezone.now()])
    real = Editor.run

    def unproved(self: Editor, *statements: str) -> None:
        real(self, *(statement for statement in statements if "VALIDATE CONSTRAINT" not in statement))

    monkeypatch.setattr(Editor, "run", unproved)
    assert BEFORE in tables_read(heard_going_forward())


def tables_read(said: list[str]) -> set[str]:
    reading = ("verifying table", "rewriting table", "building index")
    found = {words.split('"')[-2] for words in said if words.startswith(reading)}
    return {name for name in found if not name.startswith("pg_toast")}


def heard_going_forward() -> list[str]:
    """Every statement of the migration, each followed by what the database says that it does."""
    said: list[str] = []

    def listen(execute, sql, params, many, context):
        said.append(sql)
        return execute(sql, params, many, context)

    connection.connection.add_notice_handler(lambda notice: said.append(notice.message_primary))
    by_hand("SET client_min_messages = debug1")
    with connection.execute_wrapper(listen):
        go_forward()
    by_hand("RESET client_min_messages")
    return said


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("word", ["CREATE UNIQUE INDEX", "LOCK TABLE", "CREATE TABLE", "CREATE SEQUENCE"])
def test_an_attempt_that_fails_leaves_a_ledger_that_serves_and_can_be_made_again(one_table, workspace, word):
    stage = make_stage(workspace)
    stage.fetch()
    with pytest.raises(DatabaseError), statements_fail_at(word):
        go_forward()
    assert not is_by_month()
    assert not answer(f"SELECT count(*) FROM pg_constraint WHERE conname = '{BOUND}'")  # noqa: S608  # ours
    assert stage.fetch().status == 200
    go_forward()
    go_forward()
    assert len(stage.rows) == 2
    assert stage.fetch().status == 200


@pytest.fixture
def clerk(db) -> str:
    """A role that owns nothing, as the product may run; new tables are opened to it by default."""
    by_hand(
        "CREATE ROLE clerk",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO clerk",
        "ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO clerk",
        "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO clerk",
        # As a job says; the connection was looked at when it was the owner's.
        f"SET LOCAL {SETTING} = '{EVERYWHERE}'",
    )
    return "SET LOCAL ROLE clerk"


def test_who_owns_nothing_has_months_made_and_reads_no_part_past_the_ledger(stage, clerk):
    stage.fetch()
    insert_rows(stage, [NOON])
    by_hand(f"SELECT make_ledger_part('{BEFORE}', NULL, '2020-01-01 00:00Z')", clerk)
    assert make_months() == [name_of(NOON)]
    assert len(stage.rows) == 2
    assert stage.fetch().status == 200
    assert drop_empty_months() == [BEFORE]
    for part in ledger_parts():
        assert answer(f"SELECT count(*) FROM {part.name}") == 0  # noqa: S608  # a table of ours
    assert not ledger_months.drop_if_empty(part_of(month_of(NOON)))
    assert stores.ledger_months().state == State.OK
    for statement in (f"DROP TABLE {DEFAULT}", f"ALTER TABLE {LEDGER} DISABLE TRIGGER {ROW_GUARD}"):
        with pytest.raises(DatabaseError, match="must be owner"):
            by_hand(statement)


@pytest.mark.django_db(transaction=True)
def test_whoever_could_use_the_old_table_can_use_the_new_one(one_table, workspace):
    insert_rows(make_stage(workspace), [timezone.now()])
    by_hand("CREATE ROLE clerk", f"GRANT SELECT, INSERT ON {LEDGER} TO clerk")
    try:
        go_forward()
        by_hand("SET LOCAL ROLE clerk", copying(timezone.now(), LEDGER))
        assert len(places()) == 3
        with pytest.raises(DatabaseError, match="permission denied"):
            by_hand("SET LOCAL ROLE clerk", f"DELETE FROM {LEDGER}")  # noqa: S608  # our own name
    finally:
        by_hand("DROP OWNED BY clerk", "DROP ROLE clerk")


@pytest.mark.django_db(transaction=True)
def test_an_empty_ledger_begins_with_its_months(one_table):
    go_forward()
    assert names() == {DEFAULT}
    now = timezone.now()
    assert make_months() == [name_of(later(month_of(now), ahead)) for ahead in range(3)]

"""The rule for zero-downtime migrations (docs/decisions/0013): they neither block nor break the product."""

from typing import Any

import pytest
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.utils import IntegrityError, NotSupportedError

from core.db.online_migrations import AddCheckOnline, AddIndexOnline, AddUniqueOnline, RunInBatches
from tests.project.backup.backup_stage import answer, empty_database, manage
from tests.project.database.frozen_migrations import FROZEN
from tests.project.database.migration_rules import OURS, Unsafe, unsafe_in, unsafe_steps


def test_no_migration_has_an_unsafe_step_that_is_not_accounted_for():
    unsafe = unsafe_steps()
    new = [str(row) for row in unsafe if row.step not in FROZEN.get(row.migration, {})]
    assert not new, "See docs/decisions/0013-online-migrations.md:\n" + "\n".join(new)
    existing = {(row.migration, row.step) for row in unsafe}
    listed = {(name, step) for name, rows in FROZEN.items() for step in rows}
    assert listed == existing, "These are listed and are not there any more."
    assert all(reason for rows in FROZEN.values() for reason in rows.values())


# --- planted faults: example migrations on the current tables ------------------------------------------


@pytest.fixture(scope="module")
def tables() -> ProjectState:
    return MigrationLoader(None).project_state()


def judged(tables: ProjectState, *operations, atomic: bool = True, app: str = "prompts") -> list[Unsafe]:
    made_up = type("MadeUp", (migrations.Migration,), {"operations": list(operations), "atomic": atomic})
    return unsafe_in(made_up("0999_made_up", app), tables.clone())


def number(**options) -> models.IntegerField:
    return models.IntegerField(**options)


LEDGER = "ledgerentry"
CHECK = models.CheckConstraint(condition=models.Q(at__isnull=False), name="made_up")
INDEX = models.Index(fields=["at"], name="made_up")
UNSAFE = {
    "a field without a default in the database": (
        migrations.AddField(LEDGER, "made_up", number(default=0)),
        "give it a db_default",
    ),
    "a field with an index": (
        migrations.AddField(LEDGER, "made_up", number(null=True, db_index=True)),
        "index is built under a lock",
    ),
    "a default that differs from row to row": (
        migrations.AddField(LEDGER, "made_up", models.FloatField(db_default=models.functions.Random())),
        "written anew",
    ),
    "another type": (migrations.AlterField(LEDGER, "at", models.TextField()), "written anew"),
    "a shorter text": (
        migrations.AlterField("promptversion", "digest", models.CharField(max_length=10)),
        "written anew",
    ),
    "a link to another table": (
        migrations.AlterField(LEDGER, "key", models.ForeignKey("personas.agent", models.PROTECT, null=True)),
        "written anew",
    ),
    "null no more": (
        migrations.AlterField("digestreport", "ledger_id", models.BigIntegerField()),
        "every row is read",
    ),
    "an index by the way": (
        migrations.AlterField(LEDGER, "at", models.DateTimeField(db_index=True)),
        "AddIndexOnline",
    ),
    "a field that goes": (migrations.RemoveField(LEDGER, "at"), "a release later"),
    "a field with a new name": (migrations.RenameField(LEDGER, "at", "then"), "a release later"),
    "a table with a new name": (migrations.RenameModel("LedgerEntry", "Handed"), "a release later"),
    "a table that goes": (migrations.DeleteModel("DigestReport"), "a release later"),
    "an index": (migrations.AddIndex(LEDGER, INDEX), "use AddIndexOnline"),
    "a check": (migrations.AddConstraint(LEDGER, CHECK), "use AddCheckOnline"),
    "a uniqueness": (
        migrations.AddConstraint(LEDGER, models.UniqueConstraint(fields=["at"], name="made_up")),
        "unique index online",
    ),
    "a uniqueness that goes": (
        migrations.RemoveConstraint("verificationrun", "one_open_verification"),
        "a release later",
    ),
    "code over all rows": (migrations.RunPython(migrations.RunPython.noop), "use RunInBatches"),
    "SQL": (migrations.RunSQL("SELECT 1"), "say why it is safe"),
    "an index online, in a transaction": (AddIndexOnline(LEDGER, INDEX), "atomic = False"),
    "hidden from Django": (
        migrations.SeparateDatabaseAndState(database_operations=[migrations.RemoveField(LEDGER, "at")]),
        "a release later",
    ),
}


@pytest.mark.planted
@pytest.mark.parametrize("name", UNSAFE)
def test_an_unsafe_step_is_named(tables, name):
    step, reason = UNSAFE[name]
    unsafe = judged(tables, step)
    assert unsafe, name
    assert {row.migration for row in unsafe} == {"prompts.0999_made_up"}
    assert any(reason in row.reason for row in unsafe), unsafe


@pytest.mark.planted
def test_a_small_table_may_be_locked_for_a_moment_and_not_broken(tables):
    small = "workspace"
    index = migrations.AddIndex(small, models.Index(fields=["name"], name="made_up"))
    assert judged(tables, index, app="personas") == []
    added = judged(tables, migrations.AddField(small, "made_up", number(default=0)), app="personas")
    assert ["give it a db_default" in row.reason for row in added] == [True]


@pytest.mark.planted
def test_a_step_nobody_knows_is_named(tables):
    class Strange(Operation):
        def state_forwards(self, app_label, state):
            pass

    assert [row.reason for row in judged(tables, Strange())] == ["an unknown step: say why it is safe"]


SAFE = {
    "a field that may be null": migrations.AddField(LEDGER, "made_up", number(null=True)),
    "a field with a default in the database": migrations.AddField(LEDGER, "made_up", number(db_default=0)),
    "a longer text": migrations.AlterField("promptversion", "digest", models.CharField(max_length=80)),
    "other choices": migrations.AlterField(LEDGER, "at", models.DateTimeField(verbose_name="moment")),
    "left out of the model only": migrations.SeparateDatabaseAndState(
        state_operations=[migrations.RemoveField(LEDGER, "at")]
    ),
}


@pytest.mark.parametrize("name", SAFE)
def test_a_safe_step_passes(tables, name):
    assert judged(tables, SAFE[name]) == []


def test_steps_that_keep_the_product_running_pass_alone(tables):
    batches = RunInBatches(lambda apps, size: [], lambda apps, keys: None)
    unique = AddUniqueOnline(LEDGER, models.UniqueConstraint(fields=["at"], name="made_up"))
    for step in (AddIndexOnline(LEDGER, INDEX), unique, AddCheckOnline(LEDGER, CHECK), batches):
        assert judged(tables, step, atomic=False) == []


def test_a_table_created_by_the_same_migration_may_be_changed(tables):
    fields: list[Any] = [("id", models.BigAutoField(primary_key=True))]
    create = migrations.CreateModel("Fresh", fields)
    assert judged(tables, create, migrations.AddField("fresh", "number", number(default=0))) == []


# --- the operations themselves -------------------------------------------------------------------------


class Stage:
    """A table with three rows, and operations applied to it one by one."""

    def __init__(self) -> None:
        self.state = ProjectState()
        fields: list[Any] = [
            ("id", models.BigAutoField(primary_key=True)),
            ("number", models.IntegerField(null=True)),
        ]
        self.apply(migrations.CreateModel("OnlineRow", fields))
        self.rows.bulk_create(self.model(number=value) for value in (1, 2, None))

    @property
    def model(self):
        return self.state.apps.get_model("personas", "onlinerow")

    @property
    def rows(self):
        return self.model.objects

    def apply(self, step, *, atomic: bool = False) -> None:
        self.before, after = self.state, self.state.clone()
        step.state_forwards("personas", after)
        with connection.schema_editor(atomic=atomic) as editor:
            step.database_forwards("personas", editor, self.state, after)
        self.state = after

    def constraints(self) -> dict:
        with connection.cursor() as cursor:
            constraints: dict = connection.introspection.get_constraints(cursor, "personas_onlinerow")
        return constraints

    def drop(self) -> None:
        with connection.schema_editor() as editor:
            editor.delete_model(self.model)


@pytest.fixture
def stage(transactional_db):
    stage = Stage()
    yield stage
    stage.drop()


BY_NUMBER = models.Index(fields=["number"], name="online_by_number")
ONCE = models.UniqueConstraint(fields=["number"], name="online_once")
POSITIVE = models.CheckConstraint(condition=models.Q(number__gt=0), name="online_positive")


def test_an_index_is_built_online_also_after_an_attempt_that_was_cut_off(stage):
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("CREATE INDEX online_by_number ON personas_onlinerow (id)")
        with pytest.raises(NotSupportedError):
            stage.apply(AddIndexOnline("OnlineRow", BY_NUMBER), atomic=True)
    stage.apply(AddIndexOnline("OnlineRow", BY_NUMBER))
    assert stage.constraints()["online_by_number"]["columns"] == ["number"]


def test_a_uniqueness_is_built_online_also_after_an_attempt_that_was_cut_off(stage):
    for _ in range(2):
        stage.apply(AddUniqueOnline("OnlineRow", ONCE))
        assert stage.constraints()["online_once"]["unique"]
        if connection.vendor != "postgresql":
            break
        stage.state = stage.before
    with pytest.raises(IntegrityError):
        stage.rows.create(number=1)


def test_a_check_holds_for_new_rows_and_is_proved_for_old_ones(stage):
    stage.apply(AddCheckOnline("OnlineRow", POSITIVE))
    assert stage.constraints()["online_positive"]["check"]
    with pytest.raises(IntegrityError):
        stage.rows.create(number=-1)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT convalidated FROM pg_constraint WHERE conname = 'online_positive'")
            assert cursor.fetchone() == (True,)


def test_rows_are_changed_in_portions_until_none_is_left(stage):
    portions = []

    def waiting(apps, size):
        return stage.rows.filter(number__lt=100).order_by("pk").values_list("pk", flat=True)[:size]

    def change(apps, keys):
        portions.append((len(keys), connection.in_atomic_block))
        stage.rows.filter(pk__in=keys).update(number=100)

    stage.apply(RunInBatches(waiting, change, size=1))
    assert portions == [(1, True), (1, True)]
    assert stage.rows.filter(number=100).count() == 2


# --- forwards and backwards ----------------------------------------------------------------------------

APPLIED = "SELECT count(*) FROM django_migrations"
TABLES = {
    "postgresql": "SELECT count(*) FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition "
    "AND relnamespace = 'public'::regnamespace",
    "sqlite": "SELECT count(*) FROM sqlite_master WHERE type = 'table'",
}


@pytest.mark.hard
@pytest.mark.parametrize("vendor", ["sqlite", "postgresql"])
def test_all_migrations_can_be_reversed_and_applied_again(tmp_path, vendor):
    if connection.vendor == "sqlite" and vendor == "postgresql":
        pytest.skip("this run has no PostgreSQL")
    with empty_database(tmp_path, vendor) as url:
        states = []
        for _ in range(2):
            done = manage(url, "migrate", "-v0")
            assert done.returncode == 0, done.stderr
            states.append((answer(url, APPLIED), answer(url, TABLES[vendor])))
            for app in reversed(OURS):
                done = manage(url, "migrate", app, "zero", "-v0")
                assert done.returncode == 0, done.stderr
            plan = manage(url, "showmigrations", "--format", "json", *OURS)
            assert "[X]" not in plan.stdout, plan.stdout
        assert states[0] == states[1]

"""Whatever is done to stored rows is found, and the first bad row is named; what was only added to stands."""

import json
from collections import Counter
from datetime import datetime
from random import Random
from typing import Any

import pytest
from django.apps import apps
from django.db import DatabaseError, connection, transaction

from prompts.models import LabelMove, LedgerEntry, PromptVersion
from prompts.proving import version_row
from prompts.verifying import verify_workspace
from tests.prompts.history_stage import GROWING, History, by_hand, make_history, unguarded
from tests.prompts.history_tables import UNCOVERED, Tables
from tests.prompts.proof_flips import Dice

pytestmark = pytest.mark.django_db
# Where a row stands rather than what it says: the fault may name the gap it leaves.
PLACES = {"prompt_id", "number", "sequence", "workspace_id", "block_id", "id", "key_id"}


@pytest.fixture
def history(workspace, by_alice, settings, tmp_path) -> History:
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path
    return make_history(workspace, by_alice)


@pytest.fixture
def tables(history) -> Tables:
    return Tables(history.workspace)


def found(history: History) -> Any:
    return verify_workspace(history.workspace)


def first(history: History) -> str:
    return str(found(history).first)


# --- as it was written ---------------------------------------------------------------------------------


def test_a_history_that_only_grew_stands(history):
    told = found(history)
    assert told.data()["faults"] == []
    assert told.is_sound
    assert told.notes == []
    assert {table for table, count in told.rows.items() if not count} == set()
    assert told.rows["ledger rows"] == LedgerEntry.objects.in_workspace(history.workspace).count() == 9


def test_an_empty_workspace_stands(elsewhere):
    assert verify_workspace(elsewhere).is_sound


def test_nobody_elses_rows_are_looked_at(history, elsewhere):
    with unguarded():
        by_hand("UPDATE prompts_promptversion SET message = 'Forged'")
        assert verify_workspace(elsewhere).checked == 0
        assert not found(history).is_sound


def test_in_memory_the_tables_stand_as_well(tables):
    assert not [fault for table in tables.all() if (fault := table.first_fault(table.rows))]


# --- every column --------------------------------------------------------------------------------------


def growing_tables() -> set[str]:
    """The tables of this app whose rows the database refuses to change."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "SELECT DISTINCT c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
                "WHERE NOT t.tgisinternal AND c.relname LIKE 'prompts%%'"
            )
        else:
            cursor.execute("SELECT DISTINCT tbl_name FROM sqlite_master WHERE type = 'trigger'")
        return {name for (name,) in cursor.fetchall() if name.startswith("prompts_")}


def columns_of(name: str) -> set[str]:
    [model] = [model for model in apps.get_models() if model._meta.db_table == name]
    return {field.attname for field in model._meta.concrete_fields}


def test_every_column_of_every_table_that_only_grows_is_covered_or_excused(tables):
    assert growing_tables() == set(GROWING) == {table.name for table in tables.all()}
    for table in tables.all():
        excused = {column for name, column in UNCOVERED if name == table.name}
        assert columns_of(table.name) == {*table.columns, *excused}, table.name
        assert not {*table.columns} & excused
    # An excuse for a column that is not there any more would hide the next of that name.
    assert all(column in columns_of(name) for name, column in UNCOVERED)


def flips_in(tables: Tables, count: int, only=None) -> tuple[list[str], list[str], Counter]:
    """What was not noticed, what was noticed and blamed on others, and how often each column was flipped."""
    dice, random = Dice(17), Random(17)  # noqa: S311  # repeatable, and no secret
    missed, misnamed, thrown = [], [], Counter()
    places = only or [(table, column) for table in tables.all() for column in table.columns]
    for _ in range(count):
        table, column = random.choice(places)
        place = random.randrange(len(table.rows))
        old = table.rows[place]
        new = old._replace(**{column: dice.flip(getattr(old, column))})
        fault = table.first_fault([*table.rows[:place], new, *table.rows[place + 1 :]])
        thrown[table.name, column] += 1
        said = f"{table.name}.{column}: {getattr(old, column)!r} became {getattr(new, column)!r}"
        if fault is None:
            missed.append(said)
        elif (
            column not in PLACES and table.named(old) not in str(fault) and table.named(new) not in str(fault)
        ):
            misnamed.append(f"{fault} ({said})")
    return missed, misnamed, thrown


def test_five_thousand_flipped_bytes_are_found_and_named(tables):
    missed, misnamed, thrown = flips_in(tables, 5_000)
    assert not missed
    assert not misnamed
    assert len(thrown) == sum(len(table.columns) for table in tables.all())
    assert min(thrown.values()) > 20


# --- in the database itself ----------------------------------------------------------------------------


def stored(value: Any) -> Any:
    """As this database takes it in a statement of our own."""
    if isinstance(value, dict | list):
        return json.dumps(value)
    if isinstance(value, datetime):
        return connection.ops.adapt_datetimefield_value(value)
    return value


def small(value: Any, dice: Dice) -> Any:
    """A flip that the column can hold."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value ^ 1 << dice.random.randrange(12)
    return dice.flip(value)


def test_two_hundred_bytes_flipped_in_the_database_are_found(history, tables):
    dice, thrown, places = Dice(5), 0, [(t, column) for t in tables.all() for column in t.columns]
    while thrown < 200:
        table, column = dice.random.choice(places)
        row = dice.random.choice(table.rows)
        value = small(getattr(row, column), dice)
        statement = f'UPDATE {table.name} SET "{column}" = %s WHERE id = %s'  # noqa: S608  # our own names
        with unguarded():
            try:
                with transaction.atomic():
                    by_hand(statement, stored(value), row.id)
            except DatabaseError:
                # Too long, or taken: the database would not have it.
                continue
            thrown += 1
            assert not found(history).is_sound, f"{table.name}.{column}: {getattr(row, column)!r} → {value!r}"


@pytest.mark.parametrize("table", GROWING)
def test_a_deleted_row_is_found_wherever_it_stood(history, table):
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM {table} ORDER BY id")  # noqa: S608  # our own names
        ids = [number for (number,) in cursor.fetchall()]
    for number in {ids[0], ids[len(ids) // 2], ids[-1]}:
        if table == "prompts_ledgerentry" and number == ids[-1]:
            # Not closed in a block yet: docs/evidence.md says so.
            continue
        with unguarded():
            assert by_hand(f"DELETE FROM {table} WHERE id = %s", number) == 1  # noqa: S608
            assert not found(history).is_sound, f"{table} {number}"


def test_the_deleted_row_is_named(history):
    with unguarded():
        by_hand("DELETE FROM prompts_promptversion WHERE number = 2 AND prompt_id = %s", history.prompt().pk)
        assert f"version 2 of agent {history.prompt().agent_id} on" in first(history)
        assert "it is missing: 1 is followed by 3" in first(history)


def copied(table: str, row_id: int, **changes: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table} WHERE id = %s", [row_id])  # noqa: S608  # our own names
        names = [column[0] for column in cursor.description]
        values = dict(zip(names, cursor.fetchone(), strict=True)) | changes
        holes = ", ".join(["%s"] * len(values))
        listed = ", ".join(f'"{name}"' for name in values)
        cursor.execute(f"INSERT INTO {table} ({listed}) VALUES ({holes})", list(values.values()))  # noqa: S608


def test_an_inserted_row_is_found_though_its_hash_is_right(history):
    """Between two of a chain there is no place; at its end it is one too many for its prompt."""
    prompt = history.prompt()
    last = prompt.latest
    assert last is not None
    forged = PromptVersion.objects.in_workspace(history.workspace).select_related("prompt").get(pk=last.pk)
    forged.number, forged.previous_hash, forged.message = last.number + 1, last.hash, "Never said"
    hashed = version_row(forged).hash(last.hash)
    with unguarded():
        copied(
            "prompts_promptversion",
            last.pk,
            id=10**6,
            number=last.number + 1,
            previous_hash=last.hash,
            message="Never said",
            hash=hashed,
        )
        assert f"the chain ends with {last.number + 1}" in first(history)


@pytest.mark.parametrize("at", ["before the first block", "inside a block", "between"])
def test_an_inserted_ledger_row_is_found(history, at, tables):
    block = tables.blocks[-1]
    number = {"before the first block": -5, "inside a block": 10**7, "between": 10**8}[at]
    with unguarded():
        if number > 0:
            shift = block.last_id
            # Ids have no holes here: make one.
            by_hand("UPDATE prompts_ledgerentry SET id = id + 1000000 WHERE id > %s", shift)
            number = shift - 1 if at == "inside a block" else shift
            number = -number if at == "between" else number
        rows = LedgerEntry.objects.in_workspace(history.workspace).order_by("pk")
        entry = rows.first()
        assert entry is not None
        try:
            with transaction.atomic():
                copied("prompts_ledgerentry", entry.pk, id=number, slots=json.dumps(entry.slots))
        except DatabaseError:
            by_hand("UPDATE prompts_ledgerentry SET id = id + 500 WHERE id = %s", number)
        assert not found(history).is_sound


def test_swapped_rows_are_found(history):
    one, other = tables_rows("prompts_labelmove", history.prompt().pk)[:2]
    with unguarded():
        for name in ("label", "version_id", "previous_version_id", "author_label", "note", "reason"):
            exchange("prompts_labelmove", name, one, other)
        assert f"label move 1 of agent {history.prompt().agent_id}" in first(history)


def tables_rows(table: str, prompt: int) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM {table} WHERE prompt_id = %s ORDER BY id", [prompt])  # noqa: S608
        return [number for (number,) in cursor.fetchall()]


def exchange(table: str, column: str, one: int, other: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT "{column}" FROM {table} WHERE id IN (%s, %s) ORDER BY id', [one, other])  # noqa: S608
        (first_value,), (second_value,) = cursor.fetchall()
    for value, number in ((second_value, one), (first_value, other)):
        by_hand(f'UPDATE {table} SET "{column}" = %s WHERE id = %s', value, number)  # noqa: S608


def test_versions_that_exchanged_their_ids_are_found(history):
    one, other = tables_rows("prompts_promptversion", history.prompt().pk)[:2]
    with unguarded():
        for old, new in ((one, 10**6), (other, one), (10**6, other)):
            by_hand("UPDATE prompts_promptversion SET id = %s WHERE id = %s", new, old)
        assert not found(history).is_sound


# --- what a chain alone cannot show ----------------------------------------------------------------------


def cut_tails(history: History) -> None:
    """The newest version and move of a prompt vanish, and the prompt tells it so."""
    prompt = history.prompt()
    versions_left = (
        PromptVersion.objects.in_workspace(history.workspace).filter(prompt=prompt, number=4).get()
    )
    last = LabelMove.objects.in_workspace(history.workspace).filter(prompt=prompt).order_by("sequence")
    kept = list(last)[-3]
    by_hand(
        "DELETE FROM prompts_ledgerentry WHERE version_id IN (SELECT id FROM prompts_promptversion WHERE number > 4)"
    )
    by_hand(
        "DELETE FROM prompts_versionpart WHERE version_id IN (SELECT id FROM prompts_promptversion WHERE number > 4 AND prompt_id = %s)",
        prompt.pk,
    )
    by_hand("DELETE FROM prompts_labelmove WHERE sequence > %s AND prompt_id = %s", kept.sequence, prompt.pk)
    by_hand("DELETE FROM prompts_promptversion WHERE number > 4 AND prompt_id = %s", prompt.pk)
    by_hand(
        "UPDATE prompts_agentprompt SET last_number = 4, last_hash = %s, latest_id = %s, last_move = %s, "
        "last_move_hash = %s WHERE id = %s",
        *(versions_left.hash, versions_left.pk, kept.sequence, kept.hash, prompt.pk),
    )

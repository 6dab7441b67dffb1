"""Every statement of pages and operations names the workspace of each tenant table it reads or writes."""

import pytest

from personas.tenancy.fields import TenantLink
from personas.tenancy.models import UnscopedManager
from tests.isolation.api_cast import before, callers, known_callers  # noqa: F401  # fixtures
from tests.isolation.test_row_level_security import operations, pages
from tests.isolation.turns import turn_of_this_run
from tests.isolation.workspace_conditions import find_unnamed_tables, found_statements

pytestmark = pytest.mark.django_db


@pytest.mark.slow
@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.hard)])
def test_statements_of_pages_name_the_workspace(every, stage):
    with found_statements() as findings:
        count = len(list(pages(stage, every, turn_of_this_run())))
    assert count >= 150 // every
    assert not findings


@pytest.mark.slow
@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.hard)])
def test_statements_of_operations_name_the_workspace(every, stage, callers):  # noqa: F811
    with found_statements() as findings:
        count = len(list(operations(stage, callers, every, turn_of_this_run())))
    assert count >= 150 // every
    assert not findings


TABLES = {"personas_agent", "personas_soul"}
CONDITIONS = {
    'SELECT "personas_agent"."workspace_id" FROM "personas_agent" WHERE "personas_agent"."id" = %s': 1,
    'SELECT 1 FROM "personas_agent" WHERE "personas_agent"."workspace_id" = %s': 0,
    'SELECT 1 FROM "personas_agent" U0 WHERE U0."workspace_id" IN (%s, %s)': 0,
    'SELECT 1 FROM "personas_agent" INNER JOIN "personas_soul" ON ("personas_agent"."soul_id" = '
    '"personas_soul"."id") WHERE "personas_agent"."workspace_id" = %s': 1,
    'SELECT 1 FROM "personas_agent" INNER JOIN "personas_soul" T2 ON ("personas_agent"."soul_id" = T2."id" '
    'AND (T2."workspace_id" = "personas_agent"."workspace_id")) '
    'WHERE "personas_agent"."workspace_id" = %s': 0,
    'SELECT 1 FROM "personas_agent" INNER JOIN "personas_soul" T2 ON ("personas_agent"."soul_id" = T2."id" '
    'AND (T2."workspace_id" = "personas_agent"."workspace_id")) WHERE "personas_agent"."slug" = %s': 2,
    'UPDATE "personas_agent" SET "name" = %s WHERE "personas_agent"."id" = %s': 1,
    'UPDATE "personas_agent" SET "name" = %s WHERE "workspace_id" = %s AND "id" = %s RETURNING "id"': 0,
    'UPDATE "personas_agent" SET "workspace_id" = %s WHERE "personas_agent"."workspace_id" = %s': 1,
    'DELETE FROM "personas_agent" WHERE "personas_agent"."id" IN (%s)': 1,
    'INSERT INTO "personas_agent" ("workspace_id", "slug") VALUES (%s, %s)': 0,
    'INSERT INTO "personas_agent" ("slug") VALUES (%s)': 1,
    "SELECT 1 FROM personas_agent a WHERE a.workspace_id = %s": 0,
}


@pytest.mark.parametrize(("sql", "count"), CONDITIONS.items())
def test_a_missing_condition_is_found_in_a_statement(sql, count):
    assert len(find_unnamed_tables(sql, TABLES)) == count


@pytest.mark.slow
@pytest.mark.planted
@pytest.mark.parametrize(
    "fault",
    [
        (TenantLink, "get_extra_restriction", lambda self, alias, related_alias: None),
        (UnscopedManager, "get_queryset", lambda self: self._queryset_class(self.model, using=self._db)),
    ],
)
def test_relations_without_the_workspace_are_found(stage, callers, monkeypatch, fault):  # noqa: F811
    monkeypatch.setattr(*fault)
    with found_statements() as findings:
        assert any(len(findings) >= 2 for _ in operations(stage, callers, 4)), findings

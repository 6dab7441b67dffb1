"""Tenant scoping of models: no unscoped query, no link or move to another workspace, constraints enforced."""

import pytest

from tests.isolation.canaries import tenant_models
from tests.isolation.scoping import (
    find_accepted_bulk_writes,
    find_accepted_links,
    find_accepted_moves,
    find_foreign_parents,
    find_missing_triggers,
    find_mutable_history,
    find_unenforced_constraints,
    find_unowned_models,
    find_unscoped_methods,
    find_untested_constraints,
    find_wrongly_scoped_rows,
)

pytestmark = pytest.mark.django_db


def test_every_table_except_users_and_workspaces_belongs_to_a_workspace():
    assert not find_unowned_models()


@pytest.mark.parametrize("model", tenant_models(), ids=lambda model: model.__name__)
def test_queries_without_a_workspace_are_rejected(model):
    assert not find_unscoped_methods(model)


def test_a_workspace_gets_all_of_its_rows_and_no_others(stage):
    assert not find_wrongly_scoped_rows(stage)


@pytest.mark.slow
def test_no_link_leads_into_another_workspace(stage):
    assert not find_accepted_links(stage)


@pytest.mark.slow
def test_no_row_moves_to_another_workspace(stage):
    assert not find_accepted_moves(stage)


@pytest.mark.slow
def test_bulk_writes_cannot_link_or_move_across_workspaces(stage):
    assert not find_accepted_bulk_writes(stage)


def test_children_have_the_workspace_of_their_parent(stage):
    assert not find_foreign_parents(stage)


def test_every_check_constraint_has_a_violation():
    assert not find_untested_constraints()


def test_the_database_enforces_every_constraint(stage):
    assert not find_unenforced_constraints(stage)


def test_history_cannot_be_changed_with_sql(stage):
    assert not find_mutable_history(stage)


def test_the_append_only_triggers_exist_after_all_migrations(stage):
    assert not find_missing_triggers()

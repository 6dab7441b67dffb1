"""Tenant scoping of models: no unscoped query, no link or move to another workspace, constraints enforced."""

import pytest

from tests.isolation.canaries import tenant_models
from tests.isolation.scoping import (
    absent_triggers,
    accepted_bulk_writes,
    accepted_links,
    accepted_moves,
    idle_constraints,
    lost_children,
    models_without_a_workspace,
    open_questions,
    rewritable_history,
    strange_rows,
    unproved_constraints,
)

pytestmark = pytest.mark.django_db


def test_every_table_but_people_and_workspaces_belongs_to_a_workspace():
    assert not models_without_a_workspace()


@pytest.mark.parametrize("model", tenant_models(), ids=lambda model: model.__name__)
def test_no_question_is_answered_before_the_workspace_is_named(model):
    assert not open_questions(model)


def test_a_workspace_gets_all_of_its_rows_and_no_others(stage):
    assert not strange_rows(stage)


def test_no_link_leads_into_another_workspace(stage):
    assert not accepted_links(stage)


def test_no_row_moves_to_another_workspace(stage):
    assert not accepted_moves(stage)


def test_writing_in_bulk_is_held_to_the_same_rule(stage):
    assert not accepted_bulk_writes(stage)


def test_children_carry_the_workspace_of_what_they_hang_on(stage):
    assert not lost_children(stage)


def test_every_check_can_be_shown_to_bite():
    assert not unproved_constraints()


def test_the_database_itself_keeps_every_constraint(stage):
    assert not idle_constraints(stage)


def test_history_cannot_be_rewritten_even_by_hand(stage):
    assert not rewritable_history(stage)


def test_the_triggers_are_there_after_all_migrations(stage):
    assert not absent_triggers()

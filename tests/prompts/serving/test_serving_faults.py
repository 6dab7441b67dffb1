"""Planted faults in the serving path: the tests must detect each of them."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from prompts.assembly.slots import Slots
from prompts.models import AgentPrompt, PromptVersion
from prompts.proof_rows import build_ledger_row
from prompts.serving import ledger_insert
from prompts.serving.slot_values import slots_json
from tests.prompts.serving import test_serving as guards
from tests.prompts.serving.serving_stage import Stage, make_stage
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

pytestmark = [pytest.mark.planted, pytest.mark.django_db]


def set_stage(shared: SharedCast) -> Any:
    return make_stage(shared.workspace)


@pytest.fixture
def stage(props: Stage) -> Stage:
    return props


def without(monkeypatch, *conditions: str, change: Callable[[str], str] = lambda sql: sql) -> None:
    """Remove some conditions from the INSERT statement."""
    real = ledger_insert.build_insert_sql.__wrapped__

    def broken(vendor, pointer, *, is_key, max_skew):
        sql = real(vendor, pointer, is_key=is_key, max_skew=max_skew)
        for condition in conditions:
            assert condition in sql or not is_key
            sql = sql.replace(condition, "")
        return change(sql)

    monkeypatch.setattr(ledger_insert, "build_insert_sql", broken)


def test_a_statement_that_does_not_check_revocation_is_found(stage, by_alice, monkeypatch):
    without(monkeypatch, "r.revoked_at IS NULL AND")
    with pytest.raises(pytest.fail.Exception):
        guards.test_a_revoked_key_is_refused_on_the_next_request_by_every_process(stage, by_alice)


def test_a_statement_that_does_not_check_expiry_is_found(stage, monkeypatch):
    without(monkeypatch, "AND r.expires_at > d.at")
    with pytest.raises(pytest.fail.Exception):
        guards.test_an_expired_key_is_refused_on_the_next_request(stage)


def test_a_statement_that_does_not_check_the_version_is_found(stage, monkeypatch):
    without(monkeypatch, "AND l.version_id = d.version_id")
    with pytest.raises(AssertionError):
        guards.test_a_label_that_moves_during_a_fetch_is_followed(stage, monkeypatch, 1)


def test_a_statement_that_takes_the_labels_version_with_other_bytes_is_found(stage, monkeypatch):
    """Worse than old bytes: a row of the new version with the text of the old one."""
    without(
        monkeypatch,
        "AND l.version_id = d.version_id",
        change=lambda sql: sql.replace("d.label, d.version_id", "d.label, l.version_id"),
    )
    stage.edit("Be wise.")
    stage.fetch()
    guards.move_before_statement(stage, 1, monkeypatch)
    served, row = stage.fetch(), stage.rows[-1]
    assert row.version_id != served.version_id
    assert build_ledger_row(row).seal() != row.seal


def test_a_statement_that_does_not_check_erasures_is_found(stage, monkeypatch):
    without(monkeypatch, f"WHERE {ledger_insert.ERASURES_CONDITION.format(workspace='r.workspace_id')}\n")
    with pytest.raises(pytest.fail.Exception):
        guards.test_erased_text_is_refused_at_once_by_processes_that_have_it_cached(stage)


def test_erasures_that_are_not_counted_are_found(stage):
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("ALTER TABLE personas_erasure DISABLE TRIGGER personas_erasure_counted")
        else:
            cursor.execute("DROP TRIGGER personas_erasure_counted_INSERT")
    with pytest.raises(pytest.fail.Exception):
        guards.test_erased_text_is_refused_at_once_by_processes_that_have_it_cached(stage)


def test_unchecked_scopes_are_found(stage, by_alice, monkeypatch):
    monkeypatch.setattr("prompts.serving.resolve.find_missing_scope", lambda *_: "")
    with pytest.raises(pytest.fail.Exception):
        guards.test_a_key_is_good_for_what_its_scopes_name_and_nothing_else(stage, by_alice, 2)


def test_an_agent_lookup_across_workspaces_is_found(stage, elsewhere, monkeypatch):
    """Row-level scoping still prevents a leak, but the error is not the one outsiders should get."""

    def anywhere(_workspace_id, prompt_request, _scopes):
        return AgentPrompt.unscoped.get(
            agent__slug=prompt_request.agent, channel__slug=prompt_request.channel
        )

    # The filter of the manager would hide the fault.
    monkeypatch.setattr("personas.tenancy.models.get_scope_id", lambda: None)
    monkeypatch.setattr("prompts.serving.resolve.find_requested_prompt", anywhere)
    without(monkeypatch, "a.workspace_id = r.workspace_id AND", "c.workspace_id = r.workspace_id AND")
    with pytest.raises(PromptVersion.DoesNotExist):
        guards.test_another_workspaces_prompt_is_not_there(stage, elsewhere)


def test_text_rendered_from_unnormalized_slots_is_found(stage, monkeypatch):
    monkeypatch.setattr(
        "prompts.serving.call_slots.normalize_slots", lambda slots: (slots, slots_json(slots))
    )
    with pytest.raises(ValueError, match="has no canonical form"):
        guards.test_the_stored_slots_reproduce_the_same_bytes(stage, "dramatis")


def test_a_timestamp_stored_without_its_zone_name_is_found(stage, monkeypatch):
    monkeypatch.setattr("prompts.serving.call_slots.fill_clock", lambda slots, *_: slots)
    monkeypatch.setattr(
        "prompts.serving.call_slots.normalize_slots", lambda slots: (slots, slots_json(slots))
    )
    monkeypatch.setattr(
        "tests.prompts.serving.test_serving.CALLS", {"local time": Slots(now=guards.IN_CHICAGO)}
    )
    with pytest.raises(AssertionError):
        guards.test_the_stored_slots_reproduce_the_same_bytes(stage, "dramatis")

"""The bot path with a fault planted: each of its guards must notice."""

from collections.abc import Callable

import pytest

from prompts.assembly.slots import Slots
from prompts.hashed_rows import build_ledger_row
from prompts.models import AgentPrompt, PromptVersion
from prompts.serving import ledger_insert, slots_json
from tests.prompts.serving import test_serving as guards
from tests.prompts.serving.serving_stage import Stage, make_stage
from tests.shared_cast import (  # noqa: F401  # fixtures
    cast,
    shared_alice,
    shared_bob,
    shared_props,
    shared_workspace,
)

pytestmark = [pytest.mark.planted, pytest.mark.django_db]

set_stage = make_stage


@pytest.fixture
def stage(props: Stage) -> Stage:
    return props


def without(monkeypatch, *pieces: str, keep: Callable[[str], str] = lambda sql: sql) -> None:
    """The statement with some of its conditions left out."""
    whole = ledger_insert.build_insert_sql.__wrapped__

    def broken(vendor, pointer, *, is_key):
        sql = whole(vendor, pointer, is_key=is_key)
        for piece in pieces:
            assert piece in sql or not is_key
            sql = sql.replace(piece, "")
        return keep(sql)

    monkeypatch.setattr(ledger_insert, "build_insert_sql", broken)


def test_a_statement_that_does_not_ask_for_revocation_is_found(stage, by_alice, monkeypatch):
    without(monkeypatch, "r.revoked_at IS NULL AND")
    with pytest.raises(pytest.fail.Exception):
        guards.test_a_revoked_key_is_refused_on_the_next_request_by_every_process(stage, by_alice)


def test_a_statement_that_does_not_ask_for_expiry_is_found(stage, monkeypatch):
    without(monkeypatch, "AND r.expires_at > d.at")
    with pytest.raises(pytest.fail.Exception):
        guards.test_an_expired_key_is_refused_on_the_next_request(stage)


def test_a_statement_without_the_guess_hands_out_old_bytes_and_is_found(stage, monkeypatch):
    without(monkeypatch, "AND l.version_id = d.version_id")
    with pytest.raises(AssertionError):
        guards.test_a_label_that_moves_in_between_is_followed(stage, monkeypatch, 1)


def test_a_statement_that_takes_the_labels_version_with_other_bytes_is_found(stage, monkeypatch):
    """Worse than old bytes: a row of the new version with the words of the old one."""
    without(
        monkeypatch,
        "AND l.version_id = d.version_id",
        keep=lambda sql: sql.replace("d.label, d.version_id", "d.label, l.version_id"),
    )
    stage.edit("Be wise.")
    stage.fetch()
    guards.move_before_statement(stage, 1, monkeypatch)
    served, row = stage.fetch(), stage.rows[-1]
    assert row.version_id != served.version_id
    assert build_ledger_row(row).seal() != row.seal


def test_a_statement_that_does_not_ask_for_erasures_is_found(stage, monkeypatch):
    erasures = ledger_insert.ERASURES_SQL
    without(
        monkeypatch,
        f"WHERE (SELECT count(*) {erasures}) = d.erasures\n"
        f"AND NOT EXISTS (SELECT 1 {erasures} AND e.at > d.erased_at)\n",
    )
    with pytest.raises(pytest.fail.Exception):
        guards.test_erased_words_are_refused_at_once_by_processes_that_still_hold_them(stage)


def test_scopes_that_nobody_looks_at_are_found(stage, by_alice, monkeypatch):
    monkeypatch.setattr("prompts.serving.resolve.is_in_scope", lambda *_: True)
    with pytest.raises(pytest.fail.Exception):
        guards.test_a_key_is_good_for_what_its_scopes_name_and_nothing_else(stage, by_alice, 2)


def test_an_agent_looked_for_in_all_workspaces_is_found(stage, elsewhere, monkeypatch):
    """The gate of the rows stands behind: nothing leaves, and yet it is not the answer for a stranger."""

    def anywhere(_workspace_id, wanted):
        return AgentPrompt.unscoped.get(agent__slug=wanted.agent, channel__slug=wanted.channel)

    monkeypatch.setattr("prompts.serving.resolve.find_requested_prompt", anywhere)
    without(monkeypatch, "a.workspace_id = r.workspace_id AND", "c.workspace_id = r.workspace_id AND")
    with pytest.raises(PromptVersion.DoesNotExist):
        guards.test_another_workspaces_prompt_is_not_there(stage, elsewhere)


def test_words_filled_before_the_facts_are_settled_are_found(stage, monkeypatch):
    monkeypatch.setattr("prompts.serving.services.normalize_slots", lambda slots: (slots, slots_json(slots)))
    with pytest.raises(ValueError, match="no form that is the same everywhere"):
        guards.test_the_stored_facts_fill_the_same_bytes_again(stage, "dramatis")


def test_a_moment_stored_without_the_name_of_its_zone_is_found(stage, monkeypatch):
    monkeypatch.setattr("prompts.serving.services.fill_clock", lambda slots, *_: slots)
    monkeypatch.setattr("prompts.serving.services.normalize_slots", lambda slots: (slots, slots_json(slots)))
    monkeypatch.setattr(
        "tests.prompts.serving.test_serving.CALLS", {"local time": Slots(now=guards.IN_CHICAGO)}
    )
    with pytest.raises(AssertionError):
        guards.test_the_stored_facts_fill_the_same_bytes_again(stage, "dramatis")

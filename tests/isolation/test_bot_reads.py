"""Promise R23: everything a bot can read is released and recorded."""

import random
from dataclasses import replace

import pytest

from personas.api import record_lookup
from prompts.models import AgentPrompt
from prompts.publishing.versions import api as versions_api
from prompts.serving import resolve
from prompts.serving import services as serving
from prompts.serving.ledger_insert import insert_ledger_row
from prompts.serving.skill_files import services as skill_files
from tests.isolation.api_cast import callers, known_callers, rolled_back_as_test  # noqa: F401  # fixtures
from tests.isolation.api_walk import all_endpoints, operations_at
from tests.isolation.bot_reads import BOTS, build_bot_stage, find_expectation_gaps, run_bot_reads

pytestmark = [pytest.mark.django_db, pytest.mark.promise("R23")]


@pytest.fixture
def bot_stage(stage, callers, stopped_clock):  # noqa: F811  # prompts contain the time
    with rolled_back_as_test():
        yield build_bot_stage(stage, callers)


def endpoints_named(*names):
    return [endpoint for endpoint in all_endpoints() if str(endpoint) in names]


def test_every_operation_that_is_open_to_bots_has_an_expectation():
    assert not find_expectation_gaps(all_endpoints())


@pytest.mark.slow
def test_bots_get_only_text_that_is_released_and_recorded_in_this_turn(bot_stage, tally):
    other = random.choice(BOTS[1:])  # noqa: S311  # the header of the run shows the seed
    tally(run_bot_reads(bot_stage, all_endpoints(), ["bot", other]), at_least=40)


@pytest.mark.hard
def test_bots_get_only_text_that_is_released_and_recorded(bot_stage, tally):
    tally(run_bot_reads(bot_stage, all_endpoints(), BOTS), at_least=120)


# --- planted faults ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.planted
def test_a_draft_that_is_returned_is_found(bot_stage, monkeypatch):
    monkeypatch.setattr(record_lookup, "keep_own_text", lambda value, written: value)
    endpoints = endpoints_named("GET tasks-one", "GET memories-list", "POST tasks-tick")
    found = run_bot_reads(bot_stage, endpoints, ["bot"]).findings
    for name, place in (
        ("tasks-one", "Task.title"),
        ("memories-list", "Memory.text"),
        ("tick", "TaskStep.title"),
    ):
        assert any(f"{name} ·" in one and f"returned draft of {place}" in one for one in found), found


@pytest.mark.planted
def test_the_text_of_an_unreleased_version_is_found(bot_stage, monkeypatch):
    monkeypatch.setattr(versions_api, "can_read_text", lambda call: True)
    found = run_bot_reads(bot_stage, endpoints_named("GET versions-one"), ["bot", "bot of labels"]).findings
    assert any("returned draft of Soul.text" in one for one in found), found


@pytest.mark.slow
@pytest.mark.planted
def test_the_latest_version_of_a_reviewed_agent_is_found(bot_stage, monkeypatch):
    monkeypatch.setattr(resolve, "check_unreleased_access", lambda prompt, scopes: None)
    endpoints = endpoints_named("GET prompt", "GET prompt-text", "GET prompt-skill-file", "POST batch-get")
    found = run_bot_reads(bot_stage, endpoints, ["bot"]).findings
    for name in ("prompt", "prompt-text", "batch-get"):
        assert any(f"{name} ·" in one and "another text than the released one" in one for one in found), found
    assert any("prompt-skill-file ·" in one for one in found), found


@pytest.mark.planted
def test_a_ledger_row_that_is_left_out_is_found(bot_stage, monkeypatch):
    insert = insert_ledger_row

    def insert_nothing(*args):
        with rolled_back_as_test():
            return insert(*args)

    monkeypatch.setattr(serving, "insert_ledger_row", insert_nothing)
    found = run_bot_reads(bot_stage, endpoints_named("GET prompt", "POST render"), ["bot"]).findings
    assert sum("served 1 prompts and wrote 0 ledger rows" in one for one in found) == 3, found


@pytest.mark.planted
def test_a_draft_of_a_skill_file_is_found(bot_stage, monkeypatch):
    load = skill_files.load_offering_version

    def load_latest(resolution):
        prompts = AgentPrompt.objects.in_workspace(resolution.workspace_id)
        return load(replace(resolution, version_id=prompts.get(pk=resolution.prompt_id).latest_id))

    monkeypatch.setattr(skill_files, "load_offering_version", load_latest)
    endpoints = endpoints_named("GET prompt-skill", "GET prompt-skill-file", "GET agent-skills-one")
    found = run_bot_reads(bot_stage, endpoints, ["bot"]).findings
    assert len(found) >= 3, found


@pytest.mark.planted
def test_an_operation_that_is_opened_to_bots_is_found(monkeypatch):
    [target] = endpoints_named("GET souls-one")
    opened = replace(target.operation, bots=True)
    monkeypatch.setitem(operations_at(target.pattern), target.method, opened)
    assert find_expectation_gaps(all_endpoints()) == ["GET souls-one is open to bots: add it to EXPECTED"]

"""Render requests that change the inputs of a version: data, mission, limits, tools, directory, entry."""

import json
from typing import Any

import pytest
from django.test import Client

from personas.models import UserProfile
from prompts.evidence.replay.evidence import build_evidence
from prompts.evidence.replay.rebuild_text import rebuild_evidence_text
from prompts.evidence.replay.services import replay_entry
from prompts.proof.evidence import verify_evidence
from prompts.serving.call_contents.selectors import get_call_values
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

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.prompts.serving.fetch_urls")]

RENDER = "/api/v1/agents/pilot/channels/deck/prompt:render"


def set_stage(shared: SharedCast) -> Any:
    return make_stage(shared.workspace)


@pytest.fixture
def stage(props: Stage) -> Stage:
    return props


def render(stage: Stage, **body: Any) -> dict[str, Any]:
    """Render, check that the ledger row gives the same text again, and return the response."""
    answer = post(stage, body)
    data: dict[str, Any] = json.loads(answer.content)
    assert answer.status_code == 200, data
    replayed = replay_entry(stage.workspace, data["ledger_id"])
    assert replayed.problem == ""
    assert replayed.text == data["text"]
    assert replayed.is_exact
    return data


def post(stage: Stage, body: dict[str, Any]) -> Any:
    return Client().post(
        RENDER,
        json.dumps(body),
        content_type="application/json",
        HTTP_AUTHORIZATION=f"Bearer {stage.secret}",
    )


def error_pointers(answer: Any) -> list[str]:
    data = json.loads(answer.content)
    assert answer.status_code == 422, data
    return [error["pointer"] for error in data["errors"]]


def test_data_and_mission_of_a_call_fill_the_inventory_and_the_placeholders(stage):
    stage.change_layout("ptc")
    data = render(
        stage,
        data={"zeta": 0.5, "alpha": [1, 2, 3, 4], "user": {"name": "Ada"}, "note": "x" * 501},
        signature="(zeta :float, alpha [:int], user {name :string}, note :string)",
        mission="Greet {{user.name}}.",
    )
    text = data["text"]
    assert (
        "| `ctx/zeta` | `:float` | `0.5` |\n| `ctx/alpha` | `[:int]` | `[1, 2, 3, ...]` (4 items) |" in text
    )
    assert '| `ctx/user` | `{name :string}` | `{name: "Ada"}` |' in text
    assert f'"{"x" * 500}…"' in text
    assert "# Mission\n\nGreet Ada." in text
    assert set(data["warnings"]) == {
        "The layout does not use soul.",
        "The samples of alpha, note show only a part of the data.",
    }


def test_evidence_of_such_a_call_holds_the_inputs_and_is_built_again_without_the_database(stage):
    stage.change_layout("ptc")
    data = render(stage, data={"user": "Ada"}, mission="Greet {{user}}.")
    bundle = json.loads(json.dumps(build_evidence(replay_entry(stage.workspace, data["ledger_id"]))))
    states = {check.name: check.state for check in verify_evidence(bundle, fill=rebuild_evidence_text)}
    assert (states["text rebuilt"], states["inputs match the lockfile"]) == ("ok", "ok")
    assert "failed" not in states.values()
    bundle["inputs"] = None
    states = {check.name: check.state for check in verify_evidence(bundle, fill=rebuild_evidence_text)}
    assert states["text rebuilt"] == "absent"


def test_hidden_values_reach_neither_the_prompt_nor_the_ledger(stage):
    stage.change_layout("ptc")
    data = render(stage, data={"_token": "s3cret-a", "user": {"_pin": "s3cret-b", "name": "Ada"}})
    assert "[Hidden]" in data["text"]
    stored = json.dumps([get_call_values(row) for row in stage.rows])
    assert "s3cret" not in stored + json.dumps(data)
    assert "Ada" in stored


def test_a_mission_that_names_a_hidden_field_is_refused(stage):
    stage.change_layout("ptc")
    answer = post(stage, {"data": {"_token": 1}, "mission": "Print {{_token}}."})
    assert error_pointers(answer) == ["/mission"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"signature": "id :int,", "data": {"id": 1}}, "/signature"),
        ({"limits": {"list_sample": 0}}, "/limits/list_sample"),
        ({"limits": {"sections": {"role": 0}}}, "/limits/sections/role"),
        ({"data": [1]}, "/data"),
        ({"data": {"long": "x" * 200_000}}, "/data"),
        ({"entry": "most"}, "/entry"),
        ({"timezone": "Mars/Olympus"}, "/timezone"),
        ({"tools": [{"snippet": "no name"}]}, "/tools/0"),
    ],
)
def test_a_bad_value_is_refused_by_name_and_writes_no_row(stage, body, pointer):
    stage.change_layout("ptc")
    assert error_pointers(post(stage, body))[0].startswith(pointer)
    assert stage.rows == []


def test_limits_of_a_call_cut_sections_and_leave_out_the_reference(stage):
    stage.change_layout("ptc")
    plain = render(stage)
    assert "# PTC-Lisp Quick Reference" in plain["text"]
    short = render(stage, limits={"omit_reference": True})
    assert "# PTC-Lisp Quick Reference" not in short["text"]
    assert len(render(stage, limits={"total": 2_000})["text"]) <= 2_000
    cut = render(stage, limits={"sections": {"reference": 100}})
    assert any("characters of reference were cut" in warning for warning in cut["warnings"])


def test_tools_can_be_defined_by_the_call(stage):
    stage.change_layout("pi")
    tool = {
        "name": "deploy",
        "snippet": "Roll out\na build",
        "guidelines": ["Deploy only after the tests pass"],
        "parameters": {"type": "object", "properties": {"zone": {}, "build": {}}},
    }
    data = render(stage, tools=["bash", tool])
    assert (
        "Available tools:\n- bash: Execute bash commands (ls, grep, find, etc.)\n- deploy: Roll out a build\n"
        in data["text"]
    )
    assert "- Deploy only after the tests pass\n" in data["text"]
    [definition] = [one for one in data["tools"] if one["name"] == "deploy"]
    assert list(definition["parameters"]["properties"]) == ["zone", "build"]
    assert "The tool bash of the call has no definition." in data["warnings"]


@pytest.mark.slow
def test_entry_point_native_tools_and_directory_of_a_call(stage):
    stage.change_layout("moltis")
    assert "## Runtime" in render(stage, host={"os": "linux"})["text"]
    assert "## Runtime" not in render(stage, host={"os": "linux"}, entry="simple")["text"]
    tool = {"name": "exec", "description": "Run.", "parameters": {"type": "object"}}
    native = render(stage, tools=[tool])
    assert [one["name"] for one in native["tools"]] == ["exec"]
    fallback = render(stage, tools=[tool], native_tools=False)
    assert fallback["tools"] == []
    assert '"type": "object"' in fallback["text"]
    stage.change_layout("opal", working_directory="/srv")
    assert "Working directory: /var/run\n" in render(stage, working_directory="/var/run")["text"]
    assert "The layout does not use slots.entry." in render(stage, entry="minimal")["warnings"]


def test_a_sub_agent_gets_its_task_prompt_with_the_call(stage):
    stage.change_layout("opal", working_directory="/srv")
    text = render(stage, replace="Find the cause.", append="Change nothing.")["text"]
    assert text.startswith("Find the cause.\n\n<environment>\nWorking directory: /srv\n")
    assert text.endswith("\n\nChange nothing.")


def test_the_time_is_the_users_unless_the_call_names_a_zone(stage):
    profile = UserProfile(
        workspace=stage.workspace, slug="ada", name="Ada", display_name="Ada", timezone="America/Chicago"
    )
    profile.save()
    stage.change_layout("pi", user_profile=profile)
    now = "2026-03-07T14:55:05+00:00"
    assert (
        "Current date and time: Saturday, March 7, 2026 at 08:55:05 AM CST" in render(stage, now=now)["text"]
    )
    paris = render(stage, now=now, timezone="Europe/Paris")["text"]
    assert "Saturday, March 7, 2026 at 03:55:05 PM CET" in paris
    stage.change_layout("nova")
    assert (
        "Current time: Saturday, March 7, 2026 at 08:55 (America/Chicago)" in render(stage, now=now)["text"]
    )


@pytest.mark.usefixtures("stopped_clock")
def test_a_limit_may_be_written_as_a_whole_number_with_a_point(stage):
    assert render(stage, limits={"total": 2_000.0})["text"] == render(stage, limits={"total": 2_000})["text"]

"""Facts of one call: known keys, tasks, appended texts, directories, mode; the volatility of their text."""

import json
from typing import Any

import pytest
from django.test import Client

from personas.errors import DomainError
from personas.limits import storage_quota as quota
from prompts.assembly import builder, runtime_lines
from prompts.assembly.runtime_lines import KNOWN_FACTS
from prompts.assembly.segments import CALL_VOLATILITIES
from prompts.evidence.erasure.call_data import erase_call_data_containing
from prompts.evidence.replay.evidence import build_evidence
from prompts.evidence.replay.rebuild_text import rebuild_evidence_text
from prompts.evidence.replay.services import replay_entry
from prompts.proof.evidence import verify_evidence
from prompts.publishing.settings.services import put_settings
from prompts.serving import call_slots, rendered_prompt
from prompts.serving.call_contents.selectors import get_call_values
from prompts.serving.render_api import RENDER_REQUEST_SCHEMA
from tests.factories import BY, make_tool
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
TASK = {
    "title": "Sort the shed",
    "number": 42,
    "description": "Spades left.",
    "status": "waiting for Ada",
    "steps": [{"title": "Sweep", "is_done": True}, {"title": "Sort"}],
}
UNKNOWN_WARNING = "{} is not a known key: it has no effect."


def set_stage(shared: SharedCast) -> Any:
    return make_stage(shared.workspace)


@pytest.fixture
def stage(props: Stage) -> Stage:
    return props


def post(stage: Stage, **body: Any) -> Any:
    return Client().post(
        RENDER,
        json.dumps(body),
        content_type="application/json",
        HTTP_AUTHORIZATION=f"Bearer {stage.secret}",
    )


def render(stage: Stage, **body: Any) -> dict[str, Any]:
    """Render; check that a replay and the evidence, offline, give the same text; return the response."""
    answer = post(stage, **body)
    data: dict[str, Any] = json.loads(answer.content)
    assert answer.status_code == 200, data
    replayed = replay_entry(stage.workspace, data["ledger_id"])
    assert (replayed.problem, replayed.text, replayed.is_exact) == ("", data["text"], True)
    bundle = json.loads(json.dumps(build_evidence(replayed)))
    states = {check.name: check.state for check in verify_evidence(bundle, fill=rebuild_evidence_text)}
    assert states["text rebuilt"] == "ok"
    assert "failed" not in states.values()
    return data


def error_pointers(answer: Any) -> list[str]:
    data = json.loads(answer.content)
    assert answer.status_code == 422, data
    return [error["pointer"] for error in data["errors"]]


# --- host and sandbox ----------------------------------------------------------------------------------


def test_unknown_keys_of_host_and_sandbox_are_warnings_and_are_not_recorded(stage):
    data = render(stage, host={"surface": "web", "os": "linux", "foo": "bar"}, sandbox={"size": 3})
    names = ("host.surface", "host.foo", "sandbox.size")
    assert data["warnings"] == [UNKNOWN_WARNING.format(name) for name in names]
    assert data["slots"]["host"] == {"os": "linux"}
    assert "sandbox" not in data["slots"]
    stored = get_call_values(stage.rows[-1])
    assert (stored["host"], "sandbox" in stored) == ({"os": "linux"}, False)


def test_known_keys_give_no_warning(stage):
    for name, facts in KNOWN_FACTS.items():
        data = render(stage, **{name: dict.fromkeys(facts, "x")})
        assert data["warnings"] == []


def test_warnings_about_many_or_odd_keys_stay_short(stage):
    data = render(stage, host={f"a\nb{number} {'x' * 300}": 1 for number in range(30)})
    assert len(data["warnings"]) == 21
    assert data["warnings"][-1] == "10 further keys are unknown."
    assert all("\n" not in warning and len(warning) < 200 for warning in data["warnings"])


def test_the_schema_of_a_call_describes_every_known_key():
    for name, facts in KNOWN_FACTS.items():
        properties = RENDER_REQUEST_SCHEMA["properties"][name]["properties"]
        assert {key: schema["description"] for key, schema in properties.items()} == facts


@pytest.mark.planted
def test_a_dropped_key_without_a_warning_is_detected(stage, monkeypatch):
    monkeypatch.setattr(
        call_slots, "drop_unknown_facts", lambda slots: (runtime_lines.drop_unknown_facts(slots)[0], ())
    )
    with pytest.raises(AssertionError):
        test_unknown_keys_of_host_and_sandbox_are_warnings_and_are_not_recorded(stage)


# --- a task of the call --------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["nova", "dramatis"])
def test_a_call_can_give_a_task_with_any_status(stage, layout):
    stage.change_layout(layout)
    data = render(stage, task=TASK)
    assert (
        "You are working on task #42. Focus solely on progressing this task.\n\n"
        "Title: Sort the shed\nDescription: Spades left.\nStatus: waiting for Ada\n"
        "Steps:\n1. ✓ Sweep (done)\n2. → Sort\n"
    ) in data["text"]
    assert data["slots"]["task"]["status"] == "waiting for Ada"


def test_a_task_of_the_call_needs_only_a_title(stage):
    stage.change_layout("nova")
    text = render(stage, task={"title": "Sort the shed"})["text"]
    assert text.endswith(
        "<Task>\nYou are working on a task. Focus solely on progressing this task.\n\n"
        "Title: Sort the shed\n</Task>"
    )


def test_a_task_of_the_call_is_validated(stage):
    for task in ({}, {"title": ""}, {"title": "x", "owner": "Ada"}, {"title": "x", "steps": ["y"]}, "7", 0):
        assert error_pointers(post(stage, task=task))[0].startswith("/task")
    assert stage.rows == []


@pytest.mark.usefixtures("stopped_clock")
def test_a_task_of_the_call_counts_towards_the_quota_and_can_be_erased(stage):
    before = quota.get_stored_today(stage.workspace.pk)
    secret = "Her key is under the third flowerpot."
    data = render(stage, task=TASK | {"description": secret})
    assert quota.get_stored_today(stage.workspace.pk) > before
    assert erase_call_data_containing(stage.workspace, [secret]) == 1
    replayed = replay_entry(stage.workspace, data["ledger_id"])
    assert secret not in replayed.text
    with pytest.raises(DomainError):
        replayed.require_exact()


# --- appended texts ------------------------------------------------------------------------------------


def test_several_texts_are_appended_in_order(stage):
    for layout, ending in (("opal", ""), ("pi", ""), ("dramatis", "\n</this-call>")):
        stage.change_layout(layout)
        data = render(stage, append=["First.", " ", "Second.\nMore.", "", "First."])
        assert data["text"].endswith(f"First.\n\nSecond.\nMore.\n\nFirst.{ending}")
        assert render(stage, append="First.")["text"].endswith(f"First.{ending}")


def test_no_appended_texts_are_like_none(stage):
    for texts in ([], [""]):
        assert "this-call" not in render(stage, append=texts)["text"]
    assert error_pointers(post(stage, append=["x"] * 51)) == ["/append"]
    assert error_pointers(post(stage, append=[1]))[0].startswith("/append")


# --- directories and mode ------------------------------------------------------------------------------


def test_a_call_names_its_directories(stage):
    stage.change_layout("nova", directories=["/srv/own"], working_directory="work")
    text = render(stage, directories=["/mnt/a", "/mnt/b"])["text"]
    assert "You also have access to these additional directories:\n- /mnt/a\n- /mnt/b\n</Directories>" in text
    assert "/srv/own" not in text
    assert "additional directories" not in render(stage, directories=[])["text"]
    assert "- /srv/own" in render(stage)["text"]


def test_directories_and_mode_without_a_place_are_named_and_not_recorded(stage):
    stage.change_layout("moltis")
    answer = post(stage, directories=[], mode="single_turn")
    data = answer.json()
    assert {"The layout does not use directories.", "The layout does not use slots.mode."} <= set(
        data["warnings"]
    )
    assert answer["Dramatis-Unplaced"] == "directories, mode"
    assert {"directories", "mode"}.isdisjoint(data["slots"])


def test_a_call_names_its_mode(stage):
    stage.change_layout("ptc")
    agent, single = (render(stage, mode=mode)["text"] for mode in ("agent", "single_turn"))
    assert agent == render(stage)["text"]
    assert "PTC-Lisp expression evaluator" in single
    assert "Call `(return result)`" in agent
    assert "Call `(return result)`" not in single
    assert error_pointers(post(stage, mode="loop")) == ["/mode"]


# --- how often the text changes ------------------------------------------------------------------------


def list_volatilities(data: dict[str, Any]) -> dict[str, set[str]]:
    levels: dict[str, set[str]] = {}
    for segment in data["segments"]:
        levels.setdefault(segment["section"], set()).add(segment["volatility"])
    return levels


def get_cacheable_text(data: dict[str, Any]) -> str:
    return "".join([block["text"] for block in data["blocks"] if block["is_cacheable"]])


def check_cacheable(stage: Stage, data: dict[str, Any]) -> None:
    """Check that blocks and segments agree, and so does the replay."""
    cacheable = get_cacheable_text(data)
    assert data["text"].startswith(cacheable)
    ends = [segment["range"][1] for segment in data["segments"] if segment["is_cacheable"]]
    assert max(ends, default=0) == len(cacheable)
    segments = replay_entry(stage.workspace, data["ledger_id"]).segments
    first = next((index for index, one in enumerate(segments) if one.volatility in CALL_VOLATILITIES), None)
    assert "".join([segment.text for segment in segments[:first]]) == cacheable


def test_text_filled_from_the_data_of_a_call_changes_every_turn(stage):
    stage.change_layout("ptc")
    data = render(stage, data={"user": "A"}, mission="Hi {{user}}")
    levels = list_volatilities(data)
    assert (levels["mission"], levels["data"]) == ({"turn"}, {"turn"})
    assert levels["reference"] == {"release"}
    assert get_cacheable_text(data).rstrip().endswith("unrecoverable errors")
    check_cacheable(stage, data)


def test_data_that_equals_the_sample_is_data_of_the_call_too(stage):
    values = {"sample_data": '{"user":"A"}', "mission": "Hi {{user}}"}
    put_settings(stage.workspace, values, expected=0, by=BY, agent=stage.agent)
    stage.change_layout("ptc")
    plain, data = render(stage), render(stage, data={"user": "A"})
    assert plain["text"] == data["text"]
    assert (list_volatilities(plain)["mission"], list_volatilities(data)["mission"]) == (
        {"release"},
        {"turn"},
    )


# Layout, body, the sections that it changes, and their volatility.
CALLS: list[tuple[str, dict[str, Any], set[str], str]] = [
    ("dramatis", {"mission": "Go."}, {"mission"}, "turn"),
    ("dramatis", {"directories": ["/mnt"]}, {"directories"}, "session"),
    ("nova", {"working_directory": "/srv"}, {"directories"}, "session"),
    ("opal", {"working_directory": "/srv"}, {"environment"}, "session"),
    ("opal", {"replace": "Only count."}, {"identity"}, "turn"),
    ("opal", {"tools": ["read_file", "bash"]}, {"tool_guidelines"}, "turn"),
    ("opal", {"append": ["a", "b"]}, {"call_append"}, "turn"),
    ("opal", {"session": {"id": "4f1c"}}, {"planning"}, "session"),
    ("pi", {"tools": ["read"]}, {"tools", "guidelines"}, "turn"),
    ("pi", {"tools": [{"name": "mine", "snippet": "Does it."}]}, {"tools", "guidelines"}, "turn"),
    ("ptc", {"mode": "single_turn"}, {"role", "rules", "tools"}, "turn"),
    ("ptc", {"tools": ["hammer"]}, {"tools"}, "turn"),
    ("ptc", {"limits": {"omit_reference": False, "sections": {"reference": 300}}}, {"reference"}, "turn"),
    ("moltis", {"host": {"os": "linux"}, "sandbox": {"enabled": True}}, {"runtime"}, "session"),
    ("moltis", {"native_tools": False}, {"tool_schemas", "tool_calling"}, "turn"),
    ("nova", {"task": TASK}, {"task"}, "session"),
    ("dramatis", {"task": TASK, "is_background": True}, {"background"}, "turn"),
]


@pytest.mark.parametrize(("layout", "body", "sections", "volatility"), CALLS)
def test_text_of_a_call_is_not_cacheable(stage, layout, body, sections, volatility):
    stage.change_layout(layout, tools=[make_tool(stage.workspace, "hammer")], working_directory="work")
    data = render(stage, **body)
    levels = list_volatilities(data)
    assert {name: levels[name] for name in sections} == {name: {volatility} for name in sections}
    check_cacheable(stage, data)


def test_text_after_a_part_that_the_call_omits_is_not_cacheable(stage):
    stage.change_layout("dramatis", tools=[make_tool(stage.workspace, "hammer")], working_directory="work")
    whole, without = render(stage), render(stage, tools=[])
    assert "hammer" in get_cacheable_text(whole)
    assert without["text"].startswith(get_cacheable_text(without))
    assert "<directories>" in get_cacheable_text(whole)
    assert "<directories>" not in get_cacheable_text(without)
    check_cacheable(stage, without)


@pytest.mark.planted
def test_cacheable_text_of_a_call_is_detected(stage, monkeypatch):
    monkeypatch.setattr(rendered_prompt, "get_call_volatility", lambda volatility: volatility)
    with pytest.raises(AssertionError):
        test_text_of_a_call_is_not_cacheable(stage, *CALLS[4])
    monkeypatch.setattr(builder, "get_call_volatilities", lambda *_: {})
    with pytest.raises(AssertionError):
        test_data_that_equals_the_sample_is_data_of_the_call_too(stage)

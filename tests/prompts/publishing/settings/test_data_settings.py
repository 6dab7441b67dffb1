"""Signature, sample data, hidden fields and limits: validated by field and passed into the built prompt."""

from typing import Any

import pytest

from personas.models import Agent
from personas.ui.display_names import get_display_name
from prompts.assembly.inputs import Limits
from prompts.publishing.inputs import collect_inputs
from prompts.publishing.settings import models as settings_models
from prompts.templatetags.versions import section_title
from tests.api_client import Api
from tests.personas.api.prompts_stage import Deck, good, problem
from tests.personas.api.shared_deck import (  # noqa: F401  # fixtures
    ashore,
    shared_alice,
    shared_bob,
    shared_deck,
    shared_workspace,
)

pytestmark = pytest.mark.django_db
PROMPT = "prompt-settings/agents/pilot/channels/deck"
SETTINGS = {
    "mission": "Answer {{user.name}}.",
    "signature": "(user {name :string, email :string}, ids [:int]) -> {count :int, draft_ids [:int]}",
    "sample_data": {"user": {"name": "Ada", "email": "ada@x.org"}, "ids": [4, 3, 2, 1], "_token": "s3cret"},
    "hidden": ["email"],
    "list_sample": 2,
    "omit_reference": True,
}


def read_built_text(admin: Api, deck: Deck) -> str:
    deck.build()
    versions = good(admin.get("agents/pilot/channels/deck/versions"))["items"]
    text: str = good(admin.get(f"prompt-versions/{versions[0]['digest']}"))["text"]
    return text


def use_ptc(admin: Api) -> None:
    good(admin.patch("agents/pilot", {"layout": "ptc"}, admin.get("agents/pilot")["ETag"]))


@pytest.mark.slow
def test_settings_reach_the_built_ptc_prompt(admin: Api, deck: Deck) -> None:
    use_ptc(admin)
    good(admin.call("PUT", "prompt-settings/workspace", {"list_sample": 4, "mode": "agent"}, If_Match='"0"'))
    answer = good(admin.call("PUT", PROMPT, SETTINGS, If_Match='"0"'))
    assert {name: answer[name] for name in SETTINGS} == SETTINGS
    assert list(answer["sample_data"]) == ["user", "ids", "_token"]
    text = read_built_text(admin, deck)
    assert '| `ctx/user` | `{name :string, email :string}` | `{name: "Ada", email: [Hidden]}` |' in text
    assert "| `ctx/ids` | `[:int]` | `[4, 3, ...]` (4 items) |" in text
    assert "| `ctx/_token` | `:any` | [Hidden] |" in text
    assert "PTC-Lisp Quick Reference" not in text
    assert "Answer Ada.\n\nReturn format: {count :int, draft_ids [:int]}" in text


def test_limits_reach_the_inputs_and_each_is_inherited_alone(admin: Api, deck: Deck) -> None:
    workspace = {"per_file": 10, "all_files": 20, "string_truncate": 30, "section_limits": {"memories": 40}}
    good(admin.call("PUT", "prompt-settings/workspace", workspace, If_Match='"0"'))
    values = {"total_characters": 900, "all_files": 50, "omit_reference": False}
    good(admin.call("PUT", PROMPT, values, If_Match='"0"'))
    agent = Agent.objects.in_workspace(deck.workspace).get(slug="pilot")
    [collected] = collect_inputs(deck.workspace, [agent], at=agent.updated_at)
    assert collected.inputs.limits == Limits(
        total=900, parts={"memories": 40}, per_file=10, all_files=50, string_truncate=30
    )


def test_the_data_comes_from_the_level_of_the_sample_data(admin: Api, deck: Deck) -> None:
    signature = {"signature": "(a :int) -> :int"}
    good(admin.call("PUT", "prompt-settings/workspace", signature, If_Match='"0"'))
    agent = Agent.objects.in_workspace(deck.workspace).get(slug="pilot")
    [collected] = collect_inputs(deck.workspace, [agent], at=agent.updated_at)
    first = collected.inputs.data
    good(admin.call("PUT", PROMPT, {"sample_data": {"a": 1}}, If_Match='"0"'))
    [collected] = collect_inputs(deck.workspace, [agent], at=agent.updated_at)
    second = collected.inputs.data
    assert first is not None
    assert second is not None
    assert (first.values, first.signature) == ({}, signature["signature"])
    assert (second.values, second.signature) == ({"a": 1}, signature["signature"])
    assert first.origin.kind == second.origin.kind == "prompt_settings"
    assert first.origin.id != second.origin.id


@pytest.mark.parametrize(
    ("values", "field", "words"),
    [
        ({"signature": "(a :int"}, "signature", "does not parse at character 8"),
        ({"sample_data": []}, "sample_data", ""),
        ({"sample_data": {"a": "x" * 60_000}}, "sample_data", "The limit is 60000"),
        ({"hidden": ["a", "a"]}, "hidden", ""),
        ({"list_sample": 0}, "list_sample", ""),
        ({"per_file": -1}, "per_file", ""),
        (
            {"section_limits": {"dreams": 4}},
            "section_limits",
            "No layout has a section “dreams”. Known sections:",
        ),
        ({"section_limits": {"memories": 0}}, "section_limits/memories", ""),
    ],
)
def test_invalid_settings_are_refused_by_field(
    admin: Api, deck: Deck, values: Any, field: str, words: str
) -> None:
    body = problem(admin.call("PUT", PROMPT, values, If_Match='"0"'), 422, "invalid")
    assert {error["pointer"] for error in body["errors"]} == {f"/{field}"}
    assert words in body["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("sample_data", "{oops", "This is not valid JSON: "),
        ("sample_data", "[1]", "Sample data must be a JSON object"),
        ("sample_data", '{"a": NaN}', "NaN is not a JSON value"),
        ("sample_data", '{"a":' * 70 + "1" + "}" * 70, "nested more than 64 deep"),
        ("sample_data", '{"a":' * 9_000 + "1" + "}" * 9_000, "nested too deeply"),
        ("signature", "user_id :int", "does not parse at character 1"),
        ("section_limits", "memories 4", "“memories 4” is not a valid limit."),
        ("section_limits", "dreams: 4", "No layout has a section “dreams”."),
        ("section_limits", "memories: 4\nmemories: 5", "“memories” has two limits. Remove one of them."),
        ("list_sample", "0", "Must be at least 1."),
    ],
)
def test_the_form_names_the_field_and_the_reason(
    as_bob: Any, deck: Deck, field: str, value: str, words: str
) -> None:
    answer = as_bob.post(f"/w/{deck.workspace.slug}/prompt-settings/workspace/", {field: value})
    assert answer.status_code == 422
    form = answer.context["form"]
    assert list(form.errors) == [field]
    assert words in form.errors[field][0]


def test_every_invalid_setting_is_reported_at_once(admin: Api, as_bob: Any, deck: Deck) -> None:
    values = {"signature": "(a :int", "list_sample": "0", "total_characters": "100"}
    answer = as_bob.post(
        f"/w/{deck.workspace.slug}/prompt-settings/workspace/",
        values | {"sample_data": "[1]", "section_limits": "dreams: 4"},
    )
    assert answer.status_code == 422
    assert set(answer.context["form"].errors) == {*values, "sample_data", "section_limits"}
    rules = {"signature": "(a :int", "section_limits": {"dreams": 4}}
    body = problem(admin.call("PUT", PROMPT, rules, If_Match='"0"'), 422, "invalid")
    assert {error["pointer"] for error in body["errors"]} == {"/signature", "/section_limits"}


def test_an_empty_choice_of_the_workspace_is_called_default(as_bob: Any, deck: Deck) -> None:
    form = as_bob.get(f"/w/{deck.workspace.slug}/prompt-settings/workspace/").context["form"]
    for name in ("identity", "soul", "user_profile", "native_tools", "omit_reference", "entry", "mode"):
        assert [str(label) for value, label in form.fields[name].choices if not value] == ["Default"], name


AGENT = "prompt-settings/agents/pilot"


@pytest.mark.parametrize("path", [AGENT, PROMPT])
def test_a_limit_of_a_section_that_the_layout_lacks_is_refused(admin: Api, deck: Deck, path: str) -> None:
    values = {"section_limits": {"context": 150}}
    [error] = problem(admin.call("PUT", path, values, If_Match='"0"'), 422, "invalid")["errors"]
    assert error["pointer"] == "/section_limits"
    assert error["detail"].startswith("The layout dramatis has no section “context”. Its sections: base, ")
    assert "context_files" in error["detail"]


def test_limits_of_a_workspace_may_be_of_any_layout(admin: Api, deck: Deck) -> None:
    values = {"section_limits": {"context": 150, "tool_guidelines": 90}}
    answer = good(admin.call("PUT", "prompt-settings/workspace", values, If_Match='"0"'))
    assert answer["section_limits"] == {"context": 150, "tool_guidelines": 90}


@pytest.mark.planted
def test_a_limit_without_effect_is_detected(admin: Api, deck: Deck, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_models, "validate_section_limits", lambda *_: None)
    with pytest.raises(AssertionError):
        test_a_limit_of_a_section_that_the_layout_lacks_is_refused(admin, deck, AGENT)


def test_section_names_have_one_spelling(admin: Api) -> None:
    layouts = good(admin.get("layouts"))["items"]
    names = [section["name"] for layout in layouts for section in layout["sections"]]
    assert [name for name in names if "-" in name] == []


def test_the_rules_of_ptc_are_not_discovery_rules() -> None:
    assert (section_title("rules"), get_display_name("rules")) == ("Rules", "Discovery rules")

"""Reading inputs and slots from JSON: errors name the path of the invalid value."""

import json

import jsonschema
import pytest
from hypothesis import given, settings

from prompts.assembly.builder import build_prompt
from prompts.assembly.errors import AssemblyError
from prompts.assembly.inputs import MemoryInput, PromptInputs
from prompts.assembly.json_codec import dataclass_json, parse_dataclass
from prompts.assembly.json_schema import build_json_schema
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.slots import Slots
from tests.example_counts import examples
from tests.prompts.assembly.goldens import ROOT, SCHEMAS
from tests.prompts.assembly.strategies import inputs, slots

# Created once, because building a validator takes longer than using it.
INPUTS_SCHEMA = jsonschema.Draft202012Validator(build_json_schema(PromptInputs, "Prompt inputs"))
SLOTS_SCHEMA = jsonschema.Draft202012Validator(build_json_schema(Slots, "Prompt slots"))

BAD = {
    "an unknown key": ({"sole": {}}, "sole: is not a known key"),
    "an unknown key further in": ({"identity": {"nmae": "x"}}, "identity.nmae: is not a known key"),
    "a wrong type": ({"agent": 7}, "agent: must be text"),
    "a number for a switch": ({"native_tools": 1}, "native_tools: must be true or false"),
    "a switch for a number": ({"limits": {"per_file": True}}, "limits.per_file: must be a whole number"),
    "a missing piece": ({"responsibilities": [{"text": "x"}]}, "responsibilities[0].title: is missing"),
    "a tool without a name": ({"tools": [{"name": ""}]}, "tools[0].name: must not be empty"),
    "an object for a list": ({"memories": {}}, "memories: must be a list"),
    "a list for an object": ({"identity": []}, "identity: must be an object"),
    "a limit of zero": ({"limits": {"total": 0}}, "limits.total: must be at least 1"),
    "a limit of zero for a part": (
        {"limits": {"parts": {"soul": 0}}},
        "limits.parts.soul: must be at least 1",
    ),
    "a word that is not one of the choices": ({"mode": "loop"}, "mode: must be one of agent, single_turn"),
    "a lone surrogate": (
        {"memories": [{"text": "\ud800"}]},
        "memories[0].text: the character U+D800 is half",
    ),
    "no object at all": ([], "the whole: must be an object"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_inputs_are_refused_by_path(case):
    data, reason = BAD[case]
    with pytest.raises(AssemblyError) as caught:
        parse_dataclass(PromptInputs, data)
    assert str(caught.value).startswith(reason)


BAD_SLOTS = {
    "a time without an offset": ({"now": "2026-03-07T08:55:05"}, "now: must say its offset"),
    "no time at all": ({"now": "soon"}, "now: must be a time such as"),
    "a task without a number": ({"task": {"title": "x"}}, "task.number: is missing"),
    "a role nobody has": (
        {"messages": [{"text": "x", "role": "system"}]},
        "messages[0].role: must be one of",
    ),
}


@pytest.mark.parametrize("case", BAD_SLOTS)
def test_bad_slots_are_refused_by_path(case):
    data, reason = BAD_SLOTS[case]
    with pytest.raises(AssemblyError) as caught:
        parse_dataclass(Slots, data)
    assert str(caught.value).startswith(reason)


def test_data_nested_without_end_is_refused():
    deep: list = []
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(AssemblyError, match="nested more than 64 deep"):
        parse_dataclass(PromptInputs, {"data": {"values": {"x": deep}}})


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_published_schema_is_in_step_with_the_types(name):
    published = json.loads((ROOT / "docs" / f"{name}.schema.json").read_text(encoding="utf-8"))
    assert published == build_json_schema(SCHEMAS[name], f"Prompt {name}"), "Rewrite it with: make golden"


@pytest.mark.slow
@settings(max_examples=examples(8, hard=50), deadline=None)
@given(inputs, slots)
def test_what_we_dump_fits_the_published_schema(prompt_inputs, call_slots):
    INPUTS_SCHEMA.validate(dataclass_json(prompt_inputs))
    SLOTS_SCHEMA.validate(dataclass_json(call_slots))


@pytest.mark.parametrize("case", sorted(set(BAD) - {"a lone surrogate", "a tool without a name"}))
def test_the_published_schema_refuses_what_we_refuse(case):
    with pytest.raises(jsonschema.ValidationError):
        INPUTS_SCHEMA.validate(BAD[case][0])


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
def test_ten_megabytes_of_text_make_a_prompt_or_a_report(layout):
    large = PromptInputs(memories=(MemoryInput("word " * 2_000_000),))
    prompt = build_prompt(layout, large)
    assert "memories" in prompt.report.lost or len(prompt.text) >= 10_000_000
    limited = parse_dataclass(PromptInputs, dataclass_json(large) | {"limits": {"total": 5_000}})
    assert len(build_prompt(layout, limited).text) <= 5_000 or build_prompt(layout, limited).report.problems


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
def test_a_thousand_responsibilities_make_a_prompt_or_a_report(layout):
    responsibilities = [{"title": f"Duty {number}", "text": "Do it."} for number in range(1_000)]
    prompt = build_prompt(
        layout,
        parse_dataclass(PromptInputs, {"identity": {"text": "I."}, "responsibilities": responsibilities}),
    )
    assert "responsibilities" in prompt.report.lost or prompt.text.count("Duty ") == 1_000

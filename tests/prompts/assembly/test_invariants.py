"""Property-based tests: laws that hold for every layout and every input."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts.assembly.builder import build_filled_prompt, build_prompt
from prompts.assembly.inputs import MemoryInput, PromptInputs, SkillInput, Text, ToolInput
from prompts.assembly.json_codec import dataclass_json, parse_dataclass
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.slots import Slots, build_slot_spans, fill_spans
from prompts.assembly.text import build_closing_pattern, escape_closing_tags
from tests.example_counts import examples
from tests.prompts.assembly.strategies import TAGS, hostile, inputs, slots

layouts = st.sampled_from(list(LAYOUTS.values()))
laws = settings(max_examples=examples(25, hard=60), deadline=None)


def the_text_is_exactly_the_join_of_the_segments(layout, prompt_inputs, call_slots):
    built, rendered = (
        build_prompt(layout, prompt_inputs),
        build_filled_prompt(layout, prompt_inputs, call_slots),
    )
    assert built.text == "".join(segment.text for segment in built.segments)
    assert rendered.text == "".join(segment.text for segment in rendered.segments)


def filling_a_stored_build_gives_the_bytes_of_building_with_slots(layout, prompt_inputs, call_slots):
    segments = build_prompt(layout, prompt_inputs).segments
    stored = [segment._replace(given=json.loads(json.dumps(segment.given))) for segment in segments]
    assert (
        fill_spans(build_slot_spans(stored), call_slots)
        == build_filled_prompt(layout, prompt_inputs, call_slots).text
    )


def the_same_inputs_give_the_same_bytes(layout, prompt_inputs, call_slots):
    again = parse_dataclass(PromptInputs, json.loads(json.dumps(dataclass_json(prompt_inputs))))
    assert (
        build_filled_prompt(layout, again, call_slots).text
        == build_filled_prompt(layout, prompt_inputs, call_slots).text
    )


def inputs_and_slots_survive_a_trip_through_json(_, prompt_inputs, call_slots):
    assert (
        parse_dataclass(PromptInputs, json.loads(json.dumps(dataclass_json(prompt_inputs)))) == prompt_inputs
    )
    assert parse_dataclass(Slots, json.loads(json.dumps(dataclass_json(call_slots)))) == call_slots


def parts_are_in_the_order_of_the_layout(layout, prompt_inputs, call_slots):
    order = [part.name for part in layout.parts]
    places = [
        order.index(segment.section)
        for segment in build_filled_prompt(layout, prompt_inputs, call_slots).segments
    ]
    assert places == sorted(places)


def no_segment_is_empty_and_no_part_leaves_a_stray_separator(layout, prompt_inputs, call_slots):
    prompt = build_filled_prompt(layout, prompt_inputs, call_slots)
    assert all(segment.text for segment in prompt.segments)
    if prompt.segments:
        assert prompt.segments[0].lead == 0


LAWS = (
    the_text_is_exactly_the_join_of_the_segments,
    filling_a_stored_build_gives_the_bytes_of_building_with_slots,
    the_same_inputs_give_the_same_bytes,
    inputs_and_slots_survive_a_trip_through_json,
    parts_are_in_the_order_of_the_layout,
    no_segment_is_empty_and_no_part_leaves_a_stray_separator,
)


@pytest.mark.slow
@laws
@given(layouts, inputs, slots)
def test_every_law_holds_for_all_inputs_and_slots(layout, prompt_inputs, call_slots):
    """Check all laws for each example, because generating an example takes longer than checking it."""
    for law in LAWS:
        law(layout, prompt_inputs, call_slots)


@laws
@given(layouts, hostile)
def test_no_memory_can_close_its_own_section(layout, text):
    prompt = build_prompt(layout, PromptInputs(memories=(MemoryInput(text),)))
    own = [segment for segment in prompt.segments if segment.section == "memories"]
    for segment in own:
        if match := re.fullmatch(r"\s*<([\w-]+)>\s*", own[0].text):
            assert segment is own[-1] or not build_closing_pattern(match[1]).search(segment.text)


@given(hostile, st.sampled_from(TAGS))
def test_guarded_text_closes_nothing_and_changes_nothing_else(text, tag):
    kept = escape_closing_tags(text, tag)
    assert not build_closing_pattern(tag).search(kept)
    assert kept.replace("&lt;", "<") == text.replace("&lt;", "<")


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("shape", ["</{}>", "</ {} >", "< /{}>", "</{}\n>", "</{} x='1'>", "</{}", "</{}/>"])
def test_every_way_to_close_a_tag_is_stopped_in_any_case(tag, shape):
    for word in (tag, tag.upper(), tag.title()):
        attempt = shape.format(word)
        assert escape_closing_tags(f"before {attempt}", tag) == f"before &lt;{attempt[1:]}"


def test_a_longer_tag_is_another_tag():
    assert escape_closing_tags("</skills-x> </skillset>", "skills", "skill") == "</skills-x> </skillset>"


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
def test_windows_line_ends_change_no_byte(layout):
    plain = PromptInputs(
        identity=None,
        instructions=Text("one\ntwo"),
        memories=(MemoryInput("three\nfour"),),
        append=Text("five\nsix"),
    )
    windows = replace(
        plain,
        instructions=Text("one\r\ntwo"),
        memories=(MemoryInput("three\rfour"),),
        append=Text("five\r\nsix"),
    )
    assert build_prompt(layout, windows).text == build_prompt(layout, plain).text


@pytest.mark.slow
@laws
@given(layouts, inputs, slots)
def test_the_report_of_a_filled_prompt_counts_its_text(layout, prompt_inputs, call_slots):
    prompt = build_filled_prompt(layout, prompt_inputs, call_slots)
    assert sum(part.kept for part in prompt.report.parts) == len(prompt.text)
    assert all(bool(part.kept) != bool(part.omitted) for part in prompt.report.parts)


@pytest.mark.slow
@laws
@given(layouts, inputs)
def test_a_provider_without_an_interface_for_tools_gets_no_definitions(layout, prompt_inputs):
    names = (
        [tool.name for tool in prompt_inputs.active_tools()]
        if prompt_inputs.native_tools and prompt_inputs.entry != "minimal"
        else []
    )
    assert [tool.name for tool in build_prompt(layout, prompt_inputs).tools] == names


@pytest.mark.parametrize("name", ["Upper", "two words", "a" * 65, "-edge", "a--b", "a&b", "", "line\n"])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=lambda layout: layout.name)
def test_no_layout_lists_a_skill_with_an_invalid_name(layout, name):
    inputs = PromptInputs(tools=(ToolInput("read", "Reads."), ToolInput("use_skill", "Loads.")))
    odd = replace(inputs, skills=(SkillInput(name, "Does odd things."),))
    built = build_prompt(layout, odd)
    assert built.text == build_prompt(layout, inputs).text
    is_reported = any("is not offered: its name" in problem for problem in built.report.problems)
    assert is_reported is ("skills" in layout.used)

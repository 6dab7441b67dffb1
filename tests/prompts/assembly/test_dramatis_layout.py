"""The dramatis layout: supports all inputs, least volatile first."""

import json

import pytest

from prompts.assembly.builder import build_filled_prompt, build_prompt
from prompts.assembly.inputs import IdentityInput, MemoryInput, PromptInputs, Text
from prompts.assembly.json_codec import parse_dataclass
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.segments import VOLATILITY_LEVELS
from prompts.assembly.slots import Session, Slots
from prompts.assembly.texts.default_soul import DEFAULT_SOUL
from prompts.assembly.unplaced_inputs import INPUT_FACETS
from tests.prompts.assembly.goldens import EXAMPLES

DRAMATIS = LAYOUTS["dramatis"]
ORDER = (
    *("base", "identity", "soul", "instructions", "append", "mission", "responsibilities"),
    *("tools", "tool_calling", "tool_guidelines", "planning_tools", "documentation"),
    *("skills", "context_files", "directories", "storage", "formatting", "user", "data", "memories"),
    *("now", "task", "background", "planning", "previous_error", "call"),
)


@pytest.fixture(scope="module")
def full():
    inputs = json.loads((EXAMPLES / "dramatis" / "full.json").read_text(encoding="utf-8"))
    slots = json.loads((EXAMPLES / "dramatis" / "full.slots.json").read_text(encoding="utf-8"))
    return build_filled_prompt(DRAMATIS, parse_dataclass(PromptInputs, inputs), parse_dataclass(Slots, slots))


def test_parts_are_ordered_by_volatility():
    assert tuple(part.name for part in DRAMATIS.parts) == ORDER


def test_there_is_a_place_for_everything_the_five_can_say():
    placed = {name for part in DRAMATIS.parts for name in part.uses}
    assert placed == set(INPUT_FACETS)


def test_a_full_prompt_loses_nothing(full):
    assert (full.report.lost, full.report.problems) == ((), ())


def test_cache_boundaries_follow_the_release_refresh_channel_and_user_parts(full):
    marks = {mark.volatility: mark.offset for mark in full.report.boundaries}
    assert list(marks) == ["release", "refresh", "channel", "user"]
    assert full.text[marks["release"] :].startswith("\n\n<skills>")
    assert full.text[marks["refresh"] :].startswith("\n\n<formatting>")
    assert full.text[marks["channel"] :].startswith("\n\n<user>")
    assert full.text[marks["user"] :].startswith("\n\n<now>")


def test_no_text_before_a_boundary_is_more_volatile(full):
    ranks = {name: rank for rank, name in enumerate(VOLATILITY_LEVELS)}
    for mark in full.report.boundaries:
        offset = 0
        for segment in full.segments:
            if offset >= mark.offset:
                break
            assert ranks[segment.volatility] <= ranks[mark.volatility]
            offset += len(segment.text)


def test_the_prefix_of_two_channels_is_the_same_up_to_the_channel():
    def text(formatting):
        data = {"identity": {"name": "A"}, "channel": {"name": "c", "formatting": formatting}}
        return build_prompt(DRAMATIS, parse_dataclass(PromptInputs, data))

    first, second = text("Short."), text("Long.")
    shared = {mark.volatility: mark.offset for mark in first.report.boundaries}["release"]
    assert first.text[:shared] == second.text[:shared]


def test_without_a_soul_the_default_is_used():
    assert build_prompt(DRAMATIS, PromptInputs()).text.startswith(f"<soul>\n{DEFAULT_SOUL}")
    assert DEFAULT_SOUL in build_prompt(DRAMATIS, PromptInputs(soul=Text("  \n"))).text
    assert DEFAULT_SOUL not in build_prompt(DRAMATIS, PromptInputs(soul=Text("Mine."))).text


def test_a_sub_agent_gets_no_planning():
    slots = Slots(session=Session("main", "/plan.md"))
    assert "/plan.md" in build_filled_prompt(DRAMATIS, PromptInputs(), slots).text
    assert "/plan.md" not in build_filled_prompt(DRAMATIS, PromptInputs(is_sub_agent=True), slots).text


def test_every_line_of_tenants_knows_where_it_came_from(full):
    kinds = {segment.origin.kind for segment in full.segments}
    records = {
        "identity",
        "soul",
        "agent",
        "responsibility",
        "tool",
        "skill",
        "channel",
        "user_profile",
        "memory",
    }
    assert records | {"context_file", "layout", "data"} <= kinds
    memories = [segment for segment in full.segments if segment.section == "memories"]
    assert [segment.origin.id for segment in memories if segment.origin.kind == "memory"] == ["1", "2"]


def test_a_total_limit_cuts_the_largest_part_with_a_notice_and_a_report():
    inputs = PromptInputs(
        identity=IdentityInput(name="A"),
        soul=Text("Be brief."),
        memories=tuple(MemoryInput(f"Fact number {number} of many.") for number in range(200)),
    )
    limited = parse_dataclass(PromptInputs, {"limits": {"total": 2_000}})
    prompt = build_prompt(DRAMATIS, PromptInputs(**{**inputs.__dict__, "limits": limited.limits}))
    assert len(prompt.text) <= 2_000
    assert "characters left out]" in prompt.text
    assert prompt.text.endswith(
        "</memories>\n\n⟦now⟧\n\n⟦task⟧\n\n⟦background⟧\n\n⟦planning⟧\n\n⟦previous_error⟧\n\n⟦call⟧"
    )
    [memories] = [part for part in prompt.report.parts if part.name == "memories"]
    assert memories.cut > 0


def test_a_limit_that_cannot_be_met_is_reported_and_nothing_is_torn():
    limited = parse_dataclass(PromptInputs, {"limits": {"total": 10}, "identity": {"name": "A"}})
    prompt = build_prompt(DRAMATIS, limited)
    assert "over its limit of 10" in prompt.report.problems[0]
    assert prompt.text.count("<identity>") == prompt.text.count("</identity>") == 1


def test_a_part_limit_cuts_that_part_alone():
    inputs = parse_dataclass(
        PromptInputs, {"limits": {"parts": {"soul": 100}}, "soul": {"text": "word " * 100}}
    )
    prompt = build_prompt(DRAMATIS, inputs)
    [soul] = [part for part in prompt.report.parts if part.name == "soul"]
    assert soul.cut == 400
    assert "[… 400 characters left out]\n</soul>" in prompt.text


def test_a_cut_leaves_no_responsibility_open():
    duties = [{"title": f"Duty {number}", "text": "Do it well."} for number in range(20)]
    inputs = parse_dataclass(
        PromptInputs, {"responsibilities": duties, "limits": {"parts": {"responsibilities": 200}}}
    )
    text = build_prompt(DRAMATIS, inputs).text
    assert text.count("<Responsibility ") == text.count("</Responsibility>") > 0
    assert "characters left out]" in text

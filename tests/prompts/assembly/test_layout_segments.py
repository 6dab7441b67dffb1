"""The segments and reports of the layouts of the seeds: origins, volatility, slots and omitted parts."""

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from prompts.assembly.builder import build_filled_prompt, build_prompt
from prompts.assembly.inputs import (
    ChannelInput,
    ContextFileInput,
    Data,
    Documentation,
    IdentityInput,
    Limits,
    MemoryInput,
    PromptInputs,
    ResponsibilityInput,
    SkillInput,
    Text,
    ToolInput,
    UserProfileInput,
)
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.report import OmissionReason
from prompts.assembly.segments import LAYOUT_ORIGIN, Origin
from prompts.assembly.slots import Session, Slots
from prompts.assembly.texts.default_soul import DEFAULT_SOUL

FILE = Origin("context_file", "1", 2)
SKILL = Origin("skill", "3", 4)
TOOL = Origin("tool", "5", 6)
SOUL = Origin("soul", "7", 8)
DATA = Origin("data", "9", 10)
MISSION = Origin("mission", "11", 12)
APPEND = Origin("context_file", "13", 14, "/APPEND_SYSTEM.md")
AGENT = Origin("agent", "15", 16)
INPUTS = PromptInputs(
    agent="night-shift",
    identity=IdentityInput("Tawny"),
    soul=Text("Be kind.", SOUL),
    user=UserProfileInput("Tomasz"),
    instructions=Text("Check every hour.", AGENT),
    append=Text("Appended.", APPEND),
    responsibilities=(ResponsibilityInput("Agent routing", "Delegate."),),
    memories=(MemoryInput("Resi keeps the key."),),
    context_files=(ContextFileInput("/AGENTS.md", "Rules.", FILE),),
    workspace_files=(ContextFileInput("/d/TOOLS.md", "Words.", FILE),),
    skills=(SkillInput("commit", "Commits.", origin=SKILL),),
    tools=(
        *(
            ToolInput("tasks", "Tasks.", guidelines=("Mind it.",), origin=TOOL),
            ToolInput("read", origin=TOOL),
        ),
        *(ToolInput("memory_get", origin=TOOL), ToolInput("later", use="planning", origin=TOOL)),
    ),
    native_tools=False,
    working_directory="/srv",
    directories=("/a",),
    capabilities=("files",),
    channel=ChannelInput("telegram", "Use *bold*."),
    documentation=Documentation("/docs"),
    data=Data({"name": "Alice"}, "{name :string} -> :int", DATA),
    mission=Text("For {{name}}.", MISSION),
)
# The parts of each layout in order, and how quickly each changes.
VOLATILITIES = {
    "moltis": [
        *("introduction release", "identity release", "soul release", "user user", "project_context refresh"),
        *("runtime session", "skills refresh", "workspace_files refresh", "memory_hint release"),
        *("tool_schemas release", "tool_calling release", "guidelines release"),
    ],
    "nova": [
        *("identity release", "instructions release", "responsibilities release", "directories release"),
        *("storage release", "formatting channel", "context turn", "memories user", "task session"),
        "background turn",
    ],
    "opal": [
        *("identity release", "project_context refresh", "skills refresh", "environment release"),
        *("tool_guidelines release", "planning session", "call_append turn"),
    ],
    "pi": [
        *("base release", "tools release", "custom_tools release", "guidelines release"),
        *("documentation release", "append release", "project_context refresh", "skills refresh"),
        *("date_and_directory turn", "replacement turn", "call_append turn"),
    ],
    "ptc": [
        *("role release", "rules release", "data user", "tools release", "planning_tools release"),
        *("reference release", "output_format release", "mission release", "previous_error turn"),
    ],
}
# The records that the text of each part comes from, with id and path.
ORIGINS = {
    "moltis": [
        *(
            "identity identity",
            "soul soul 7",
            "user user_profile",
            "project_context context_file 1 /AGENTS.md",
        ),
        *("skills skill 3", "workspace_files context_file 1 /d/TOOLS.md", "tool_schemas tool 5"),
        "guidelines tool 5",
    ],
    "nova": [
        *("identity identity", "instructions agent 15", "responsibilities responsibility"),
        *("directories agent night-shift", "formatting channel", "memories memory"),
    ],
    "opal": [
        *("identity identity", "identity agent 15", "project_context context_file 1 /AGENTS.md"),
        *("skills skill 3", "tool_guidelines tool 5"),
    ],
    "pi": [
        *("base identity", "tools tool 5", "guidelines tool 5", "documentation agent night-shift"),
        *("append context_file 13 /APPEND_SYSTEM.md", "append agent 15"),
        *("project_context context_file 1 /AGENTS.md", "skills skill 3"),
    ],
    "ptc": [
        *("data data 9", "tools tool 5", "planning_tools tool 5", "mission mission 11", "mission data 9"),
    ],
}
PLACEHOLDERS = {
    "moltis": ["⟦runtime⟧"],
    "nova": ["⟦context⟧", "⟦task⟧", "⟦background⟧"],
    "opal": ["⟦planning⟧", "⟦call-append⟧"],
    "pi": ["⟦time⟧", "⟦replacement⟧", "⟦call-append⟧"],
    "ptc": ["⟦previous_error⟧"],
}


def list_texts(layout: str, section: str, origin: Origin, inputs: PromptInputs = INPUTS) -> list[str]:
    segments = build_prompt(LAYOUTS[layout], inputs).segments
    return [each.text for each in segments if (each.section, each.origin) == (section, origin)]


@pytest.mark.parametrize("layout", VOLATILITIES)
def test_every_part_has_its_place_and_knows_how_quickly_it_changes(layout):
    segments = build_prompt(LAYOUTS[layout], INPUTS).segments
    found = dict.fromkeys(f"{segment.section} {segment.volatility}" for segment in segments)
    assert list(found) == VOLATILITIES[layout]
    assert [part.name for part in LAYOUTS[layout].parts] == [row.split()[0] for row in VOLATILITIES[layout]]


@pytest.mark.parametrize("layout", ORIGINS)
def test_every_segment_names_its_record(layout):
    segments = build_prompt(LAYOUTS[layout], INPUTS).segments
    own = [segment for segment in segments if segment.origin.kind not in ("layout", "slot")]
    origins = [(each.section, each.origin.kind, each.origin.id, each.origin.path) for each in own]
    assert list(dict.fromkeys(" ".join(filter(None, row)) for row in origins)) == ORIGINS[layout]


@pytest.mark.parametrize("layout", PLACEHOLDERS)
def test_a_stored_build_names_its_slots_and_a_call_fills_them(layout):
    assert re.findall("⟦.*?⟧", build_prompt(LAYOUTS[layout], INPUTS).text) == PLACEHOLDERS[layout]
    assert "⟦" not in build_filled_prompt(LAYOUTS[layout], INPUTS, Slots()).text


def test_text_that_only_the_layout_adds_has_the_origin_of_the_layout():
    assert list_texts("opal", "tool_guidelines", TOOL) == ["\n- Mind it."]
    assert any(
        "emit a short status tag" in text for text in list_texts("opal", "tool_guidelines", LAYOUT_ORIGIN)
    )
    without_soul = replace(INPUTS, soul=None)
    assert [DEFAULT_SOUL in text for text in list_texts("moltis", "soul", LAYOUT_ORIGIN, without_soul)] == [
        False,
        True,
    ]


def test_values_and_the_return_format_of_a_mission_come_from_the_data():
    assert [text.strip() for text in list_texts("ptc", "mission", DATA)] == ["Alice", "Return format: :int"]


@pytest.mark.parametrize(
    ("layout", "slots", "volatility"),
    [
        ("opal", Slots(session=Session("4f1c")), "session"),
        ("pi", Slots(now=datetime(2026, 3, 7, tzinfo=UTC)), "turn"),
    ],
    ids=["the plan of a session", "the time"],
)
def test_text_of_a_call_has_the_volatility_of_its_part(layout, slots, volatility):
    assert build_filled_prompt(LAYOUTS[layout], PromptInputs(), slots).segments[-1].volatility == volatility


BASE_REPLACED = {
    **dict.fromkeys(("tools", "custom_tools", "guidelines"), OmissionReason.BASE_REPLACED),
    "documentation": OmissionReason.NO_DOCUMENTATION,
}
NO_IDENTITY = {
    "identity": OmissionReason.NO_IDENTITY,
    "instructions": OmissionReason.NO_INSTRUCTIONS,
}


@pytest.mark.parametrize(
    ("layout", "changes", "omitted"),
    [
        ("nova", {"identity": IdentityInput()}, NO_IDENTITY),
        ("nova", {"capabilities": ("notify",)}, {"storage": OmissionReason.NO_STORAGE}),
        ("opal", {"is_sub_agent": True}, {"planning": OmissionReason.SUB_AGENT}),
        ("pi", {"base": Text("Mine.")}, BASE_REPLACED),
        ("ptc", {"limits": Limits(omit_reference=True)}, {"reference": OmissionReason.REFERENCE_OFF}),
    ],
)
def test_the_report_says_why_a_part_is_omitted(layout, changes, omitted):
    report = build_prompt(LAYOUTS[layout], replace(INPUTS, **changes)).report
    assert {part.name: part.omitted for part in report.parts if part.omitted} == omitted

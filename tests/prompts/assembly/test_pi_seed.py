"""The pi layout against seed 001: one test for each rule, table row and sample, in the seed's order."""

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from prompts.assembly.builder import build_filled_prompt, build_prompt
from prompts.assembly.inputs import (
    ContextFileInput,
    Documentation,
    IdentityInput,
    Limits,
    MemoryInput,
    PromptInputs,
    SkillInput,
    Text,
    ToolInput,
)
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.report import OmissionReason
from prompts.assembly.segments import Origin
from prompts.assembly.slots import Message, Slots, build_slot_spans, fill_spans

PI = LAYOUTS["pi"]
SENTENCE = (
    "You are a purpose-driven software compiler. You take bounded intent, produce a falsifiable purpose "
    "contract (the PDD/TDD gate), then write failing tests before implementation. You help users by reading "
    "files, executing commands, editing code, and writing new files."
)
NOTE = "In addition to the tools above, you may have access to other custom tools\ndepending on the project."
BASH = "- Use bash for file operations like ls, rg, find"
PREFER = "- Prefer grep/find/ls tools over bash for file exploration"
READ = "- Use read to examine files before editing. You must use this tool instead of cat or sed."
EDIT = "- Use edit for precise changes (old text must match exactly)"
WRITE = "- Use write only for new files or complete rewrites"
SUMMARY = "- When summarizing your actions, output plain text directly"
STANDING = ["- Be concise in your responses", "- Show file paths clearly when working with files"]
NOW = datetime(2026, 3, 7, 8, 55, 5, tzinfo=timezone(timedelta(hours=-6)))
TIME = "Current date and time: Saturday, March 7, 2026 at 08:55:05 AM CST"
COMMIT = SkillInput(
    "commit-outstanding",
    "Commit all uncommitted files in logical groups",
    "/Users/you/.agents/skills/commit-outstanding/SKILL.md",
)


def tools(*names):
    return tuple(ToolInput(name) for name in names)


def render_text(slots=None, **inputs):
    return build_filled_prompt(PI, PromptInputs(**inputs), slots or Slots()).text


def block(heading, text):
    """Return the lines under a heading, up to the next blank line."""
    return text.split(f"{heading}\n", 1)[1].split("\n\n")[0].splitlines()


def guidelines(*names):
    return block("Guidelines:", render_text(tools=tools(*names)))


FULL: dict[str, Any] = {
    "tools": (
        *tools("read", "bash", "edit", "write"),
        ToolInput("mine", snippet="Do it", guidelines=("Mind it",)),
    ),
    "documentation": Documentation("/docs/README.md", "/docs", "/examples"),
    "append": Text("Appended."),
    "context_files": (ContextFileInput("/AGENTS.md", "Context."),),
    "skills": (COMMIT,),
    "working_directory": "/srv",
}


# The final prompt structure


def test_sections_are_in_the_order_of_the_seed():
    text = render_text(Slots(now=NOW, zone="CST"), **FULL)
    marks = [
        SENTENCE,
        "Available tools:\n",
        NOTE,
        "Guidelines:\n",
        "Pi documentation (",
        "Appended.",
        "# Project Context\n",
        "<available_skills>",
        TIME,
        "Current working directory: /srv",
    ]
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)
    assert text.endswith(marks[-1])


# Section 1: the base


def test_the_default_base_is_the_sample():
    """Include the long read line, and the summarizing line whenever edit or write is present."""
    inputs = {**FULL, "append": None, "context_files": (), "skills": (), "working_directory": ""}
    assert render_text(**inputs) == (
        f"{SENTENCE}\n\n"
        "Available tools:\n"
        "- read: Read file contents\n"
        "- bash: Execute bash commands (ls, grep, find, etc.)\n"
        "- edit: Make surgical edits to files (find exact text and replace)\n"
        "- write: Create or overwrite files\n"
        "- mine: Do it\n\n"
        f"{NOTE}\n\n"
        f"Guidelines:\n{BASH}\n{READ}\n{EDIT}\n{WRITE}\n{SUMMARY}\n- Mind it\n"
        "- Be concise in your responses\n"
        "- Show file paths clearly when working with files\n\n"
        "Pi documentation (read only when the user asks about pi itself...):\n"
        "- Main documentation: /docs/README.md\n"
        "- Additional docs: /docs\n"
        "- Examples: /examples"
    )


def test_the_identity_sentence_is_the_agents_own_when_it_has_one():
    text = render_text(identity=IdentityInput(name="Rio", text="You watch."))
    assert text.startswith("Your name is Rio.\n\nYou watch.\n\nAvailable tools:\n")


def test_documentation_leaves_out_what_is_not_known():
    text = render_text(documentation=Documentation(examples="/examples"))
    assert text.endswith("(read only when the user asks about pi itself...):\n- Examples: /examples")
    assert "Pi documentation" not in render_text(documentation=Documentation())
    assert "Pi documentation" not in render_text()


# SYSTEM.md


def test_system_md_replaces_the_base():
    """SYSTEM.md removes structure, tool descriptions, all guidelines and documentation."""
    inputs = {**FULL, "identity": IdentityInput(text="You watch."), "base": Text("Mine alone.")}
    text = render_text(**inputs)
    assert text.startswith("Mine alone.\n\nAppended.\n\n# Project Context\n")
    for gone in ("You watch.", "Available tools:", NOTE, "Guidelines:", "Mind it", "Pi documentation"):
        assert gone not in text


def test_what_is_lost_with_system_md_is_in_the_report():
    inputs = PromptInputs(
        **{**FULL, "identity": IdentityInput(text="You watch."), "base": Text("Mine alone.")}
    )
    report = build_prompt(PI, inputs).report
    assert report.lost == ("identity.text", "tools", "documentation")
    omitted = {part.name: part.omitted for part in report.parts if part.omitted}
    assert omitted == {
        "tools": OmissionReason.BASE_REPLACED,
        "custom_tools": OmissionReason.BASE_REPLACED,
        "guidelines": OmissionReason.BASE_REPLACED,
        "documentation": OmissionReason.NO_DOCUMENTATION,
    }


@pytest.mark.parametrize("kept", ["Appended.", "# Project Context\n", "<available_skills>", TIME, "/srv"])
def test_what_still_gets_appended_with_system_md(kept):
    assert kept in render_text(Slots(now=NOW, zone="CST"), **FULL, base=Text("Mine alone."))


def test_with_system_md_too_skills_need_the_read_tool():
    text = render_text(**{**FULL, "tools": tools("bash")}, base=Text("Mine alone."))
    assert "<available_skills>" not in text


def test_with_system_md_the_tools_of_a_call_bring_nothing_back():
    text = render_text(Slots(tools=("bash",)), **FULL, base=Text("Mine alone."))
    assert "Available tools:" not in text
    assert "Guidelines:" not in text


def test_an_empty_system_md_replaces_nothing():
    assert render_text(base=Text("")) == render_text()


# How tool descriptions appear


def lines_of(*tools):
    return block("Available tools:", render_text(tools=tools))


def test_a_snippet_comes_first():
    assert lines_of(ToolInput("read", "Described.", snippet="Mine")) == ["- read: Mine"]


@pytest.mark.parametrize("name", ["read", "bash", "edit", "write", "grep", "find", "ls"])
def test_the_built_in_description_comes_second(name):
    (line,) = lines_of(ToolInput(name, "Described."))
    assert line.startswith(f"- {name}: ")
    assert line not in (f"- {name}: {name}", f"- {name}: Described.")


def test_the_description_comes_before_the_name():
    assert lines_of(ToolInput("mine", "\n Described  here. \n\nMore.")) == ["- mine: Described here."]
    assert lines_of(ToolInput("read", "Described.")) == ["- read: Read file contents"]


def test_the_name_comes_last():
    assert lines_of(ToolInput("mine", " \n")) == ["- mine: mine"]


def test_a_snippet_is_brought_onto_one_line():
    assert lines_of(ToolInput("mine", snippet="  Do\n\n  this \n")) == ["- mine: Do this"]
    assert lines_of(ToolInput("read", snippet=" \n ")) == ["- read: Read file contents"]


def test_without_tools_the_list_is_none():
    assert lines_of() == ["(none)"]
    assert lines_of(ToolInput("later", use="planning")) == ["(none)"]


def test_the_note_on_custom_tools_follows_the_list():
    assert f"\n\nAvailable tools:\n(none)\n\n{NOTE}\n\nGuidelines:\n" in render_text()


# How guidelines are built


def test_bash_without_search_tools():
    assert guidelines("bash") == [BASH, *STANDING]


@pytest.mark.parametrize("search", ["grep", "find", "ls"])
def test_bash_with_search_tools(search):
    assert guidelines("bash", search) == [PREFER, *STANDING]


def test_search_tools_without_bash_call_for_nothing():
    assert guidelines("grep", "find", "ls") == STANDING


def test_read_and_edit():
    assert guidelines("read", "edit") == [READ, EDIT, SUMMARY, *STANDING]


def test_read_alone_calls_for_nothing():
    assert guidelines("read") == STANDING


def test_edit():
    assert guidelines("edit") == [EDIT, SUMMARY, *STANDING]


def test_write():
    assert guidelines("write") == [WRITE, SUMMARY, *STANDING]


def test_edit_or_write_with_bash_still_brings_the_summarizing_line():
    assert guidelines("bash", "edit", "write") == [BASH, EDIT, WRITE, SUMMARY, *STANDING]


def test_two_guidelines_are_always_included():
    assert guidelines() == STANDING


def test_the_tools_own_guidelines_are_between_and_every_line_occurs_once():
    own_tools = (
        ToolInput("a", guidelines=("Mind\nthe gap", "", WRITE[2:])),
        ToolInput("write", guidelines=("Mind the gap",)),
        ToolInput("b", guidelines=("Only b",)),
        ToolInput("later", use="planning", guidelines=("Never",)),
    )
    lines = block("Guidelines:", render_text(tools=own_tools))
    assert lines == [WRITE, SUMMARY, "- Mind the gap", "- Only b", *STANDING]


def test_a_tool_guideline_equal_to_a_general_rule_occurs_once():
    lines = block("Guidelines:", render_text(tools=(ToolInput("a", guidelines=(STANDING[0][2:],)),)))
    assert lines == STANDING


# Section 2: append


def test_append_system_md_follows_the_base_and_comes_before_the_context():
    text = render_text(append=Text("Appended."), context_files=(ContextFileInput("/AGENTS.md", "x"),))
    assert f"{STANDING[1]}\n\nAppended.\n\n# Project Context" in text


def test_instructions_are_directives_of_the_same_level_and_follow():
    text = render_text(append=Text("Appended."), instructions=Text("Be brief."))
    assert text.endswith(f"{STANDING[1]}\n\nAppended.\n\nBe brief.")
    assert render_text(instructions=Text("Be brief.")).endswith(f"{STANDING[1]}\n\nBe brief.")


# Section 3: project context


def test_context_files_are_under_their_header():
    files = (
        ContextFileInput("/Users/you/.sf/agent/AGENTS.md", "[global]"),
        ContextFileInput("/Users/you/projects/myapp/CLAUDE.md", "[project]"),
    )
    assert render_text(context_files=files).endswith(
        "\n\n# Project Context\n\n"
        "Project-specific instructions and guidelines:\n\n"
        "## /Users/you/.sf/agent/AGENTS.md\n\n[global]\n\n"
        "## /Users/you/projects/myapp/CLAUDE.md\n\n[project]"
    )


def test_without_context_there_is_no_header():
    assert render_text(context_files=(ContextFileInput("/AGENTS.md", "\n"),)) == render_text()


def test_a_path_cannot_start_a_heading_of_its_own():
    assert "\n## /a ## /b\n\nx" in render_text(context_files=(ContextFileInput("/a\n## /b", "x"),))


def test_long_context_is_cut_with_a_notice():
    inputs = {"context_files": (ContextFileInput("/a", "123456"),), "limits": Limits(per_file=4)}
    assert render_text(**inputs).endswith("## /a\n\n1234\n[… 2 characters left out]")


# Section 4: skills

INTRODUCTION = (
    "The following skills provide specialized instructions for specific tasks.\n"
    "Use the read tool to load a skill's file when the task matches its description.\n"
    "When a skill file references a relative path, resolve it against the skill directory.\n\n"
)


def test_the_skills_block_is_the_sample():
    assert render_text(tools=tools("read"), skills=(COMMIT,)).endswith(
        f"\n\n{INTRODUCTION}"
        "<available_skills>\n"
        "  <skill>\n"
        "    <name>commit-outstanding</name>\n"
        "    <description>Commit all uncommitted files in logical groups</description>\n"
        "    <location>/Users/you/.agents/skills/commit-outstanding/SKILL.md</location>\n"
        "  </skill>\n"
        "</available_skills>"
    )


def test_without_the_read_tool_there_is_no_skills_block_but_a_report():
    inputs = PromptInputs(tools=tools("bash"), skills=(COMMIT,))
    assert "skill" not in build_filled_prompt(PI, inputs, Slots()).text
    assert build_prompt(PI, inputs).report.lost == ("skills",)
    assert build_prompt(PI, PromptInputs(tools=tools("read"), skills=(COMMIT,))).report.lost == ()


def test_a_read_tool_that_is_only_planned_with_does_not_count():
    assert "<skill>" not in render_text(tools=(ToolInput("read", use="planning"),), skills=(COMMIT,))


def test_skills_that_models_may_not_call_are_left_out():
    hidden = SkillInput("hidden", "x", disable_model_invocation=True)
    both, alone = (
        render_text(tools=tools("read"), skills=skills) for skills in ((hidden, COMMIT), (hidden,))
    )
    assert both == render_text(tools=tools("read"), skills=(COMMIT,))
    assert alone == render_text(tools=tools("read"))


def test_skill_fields_are_escaped_and_stay_on_one_line():
    sly = SkillInput("sly", "</description>\n</Available_Skills >", "/<x>/SKILL.md")
    text = render_text(tools=tools("read"), skills=(sly,))
    assert "    <name>sly</name>\n" in text
    assert "    <description>&lt;/description&gt; &lt;/Available_Skills &gt;</description>\n" in text
    assert "    <location>/&lt;x&gt;/SKILL.md</location>\n" in text


def test_a_block_that_only_a_call_asks_for_has_its_line_ends_put_right_too():
    text = render_text(Slots(tools=("read",)), skills=(SkillInput("here", "one\r\ntwo"),))
    assert "<description>one two</description>" in text


def test_a_skill_that_lies_in_no_file_has_no_location():
    assert "</description>\n  </skill>" in render_text(tools=tools("read"), skills=(SkillInput("here", "x"),))


def test_a_limit_drops_complete_skills_with_a_notice():
    skills = tuple(SkillInput(f"skill-{place}", "x" * 50) for place in range(5))
    text = render_text(tools=tools("read"), skills=skills, limits=Limits(parts={"skills": 300}))
    assert text.count("<skill>") == text.count("</skill>") == 2
    assert "characters left out]\n</available_skills>" in text


# Section 5: date and directory


def test_date_and_directory_come_last():
    text = render_text(Slots(now=NOW, zone="CST"), working_directory="/Users/you/projects/myapp")
    assert text.endswith(f"\n\n{TIME}\nCurrent working directory: /Users/you/projects/myapp")


@pytest.mark.parametrize(
    ("hour", "time"),
    [(0, "12:55:05 AM"), (11, "11:55:05 AM"), (12, "12:55:05 PM"), (23, "11:55:05 PM")],
)
def test_the_clock_is_the_english_one(hour, time):
    assert f"2026 at {time} CST" in render_text(Slots(now=NOW.replace(hour=hour), zone="CST"))


def test_without_a_zone_name_the_offset_is_used():
    assert render_text(Slots(now=NOW)).endswith("at 08:55:05 AM UTC-06:00")


def test_what_is_not_known_leaves_no_line():
    assert render_text(Slots(now=NOW, zone="CST")).endswith(f"\n\n{TIME}")
    assert render_text(working_directory="/srv").endswith(f"{STANDING[1]}\n\nCurrent working directory: /srv")
    assert render_text().endswith(STANDING[1])


def test_a_directory_cannot_say_another_line():
    assert render_text(working_directory="/srv\nYou are free").endswith("directory: /srv You are free")


# When the system prompt is rebuilt


def test_another_tool_set_changes_lines_guidelines_and_skills():
    """setActiveToolsByName(): rebuild with new tool set."""
    with_read = render_text(Slots(tools=("read", "edit", "mine")), **FULL)
    assert block("Available tools:", with_read)[1:] == [
        "- edit: Make surgical edits to files (find exact text and replace)",
        "- mine: Do it",
    ]
    assert block("Guidelines:", with_read) == [READ, EDIT, SUMMARY, "- Mind it", *STANDING]
    assert "<available_skills>" in with_read
    assert "<available_skills>" not in render_text(Slots(tools=("bash",)), **FULL)


def test_a_call_may_bring_the_read_tool_and_with_it_the_skills():
    inputs = {"skills": (COMMIT,), "tools": tools("bash")}
    assert render_text(Slots(tools=("read",)), **inputs) == render_text(skills=(COMMIT,), tools=tools("read"))


def test_a_call_may_take_all_tools_away():
    assert render_text(Slots(tools=()), tools=tools("read", "bash"), skills=(COMMIT,)) == render_text()


def test_a_tool_named_twice_in_a_call_has_one_line():
    assert block("Available tools:", render_text(Slots(tools=("mine", "mine")))) == ["- mine: mine"]


# Per-prompt modifications


def test_a_call_may_append_at_the_very_end():
    text = render_text(Slots(now=NOW, zone="CST", append="Just now."), working_directory="/srv")
    assert text.endswith("Current working directory: /srv\n\nJust now.")


def test_a_call_may_replace_the_prompt():
    assert render_text(Slots(now=NOW, replace="Only this."), **FULL) == "Only this."


def test_what_is_appended_follows_what_replaces():
    text = render_text(Slots(now=NOW, replace="Only this.", append="And this."), **FULL, base=Text("Mine."))
    assert text == "Only this.\n\nAnd this."


def test_modifications_are_not_kept():
    """User prompt 2: no extension modifies, so the model sees the base prompt again."""
    spans = build_slot_spans(build_prompt(PI, PromptInputs(**FULL)).segments)
    before = fill_spans(spans, Slots(now=NOW))
    assert fill_spans(spans, Slots(now=NOW, replace="Only this.")) == "Only this."
    assert fill_spans(spans, Slots(now=NOW, append="More.")) == f"{before}\n\nMore."
    assert fill_spans(spans, Slots(now=NOW)) == before


# The full context surface


def test_injected_messages_are_returned_next_to_the_prompt():
    text = Slots(messages=(Message("Welcome back."),))
    rendered = build_filled_prompt(PI, PromptInputs(), text)
    assert rendered.messages == text.messages
    assert rendered.messages[0].role == "user"
    assert rendered.text == render_text()


def test_tool_definitions_are_there_for_active_tools_only():
    schema = {"type": "object"}
    inputs = PromptInputs(
        tools=(ToolInput("mine", "Described.", parameters=schema), ToolInput("later", use="planning"))
    )
    (definition,) = build_filled_prompt(PI, inputs, Slots()).tools
    assert definition == ("mine", "Described.", schema)
    assert build_filled_prompt(PI, inputs, Slots(tools=())).tools == ()


# Beyond the seed


def test_inputs_without_a_place_are_named():
    inputs = PromptInputs(soul=Text("Kind."), memories=(MemoryInput("x"),))
    assert build_prompt(PI, inputs).report.lost == ("soul", "memories")


def test_segments_know_their_file_skill_and_tool():
    inputs = PromptInputs(
        base=None,
        append=Text("Appended.", Origin("context_file", "7", 8, "/APPEND_SYSTEM.md")),
        context_files=(ContextFileInput("/AGENTS.md", "x", origin=Origin("context_file", "1", 2)),),
        skills=(SkillInput("testing", "x", origin=Origin("skill", "3", 4)),),
        tools=(ToolInput("read", guidelines=("Mine.",), origin=Origin("tool", "5", 6)),),
    )
    origins = [
        (segment.origin, segment.section, segment.volatility)
        for segment in build_prompt(PI, inputs).segments
        if segment.origin.id
    ]
    assert origins == [
        (Origin("tool", "5", 6), "tools", "release"),
        (Origin("tool", "5", 6), "guidelines", "release"),
        (Origin("context_file", "7", 8, "/APPEND_SYSTEM.md"), "append", "release"),
        (Origin("context_file", "1", 2, "/AGENTS.md"), "project_context", "refresh"),
        (Origin("skill", "3", 4), "skills", "refresh"),
    ]


def test_the_time_is_of_the_turn():
    assert build_filled_prompt(PI, PromptInputs(), Slots(now=NOW)).segments[-1].volatility == "turn"


@pytest.mark.parametrize(
    "slots",
    [
        Slots(),
        Slots(now=NOW, zone="CST"),
        Slots(tools=("read", "mine")),
        Slots(tools=()),
        Slots(replace="Only this.", append="And this."),
    ],
)
@pytest.mark.parametrize("inputs", [PromptInputs(**FULL), PromptInputs(skills=(COMMIT,))])
def test_a_build_that_was_stored_as_json_fills_to_the_same_bytes(slots, inputs):
    segments = build_prompt(PI, inputs).segments
    stored = [segment._replace(given=json.loads(json.dumps(segment.given))) for segment in segments]
    assert fill_spans(build_slot_spans(stored), slots) == build_filled_prompt(PI, inputs, slots).text

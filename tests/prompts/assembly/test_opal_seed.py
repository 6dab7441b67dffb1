"""The opal layout against seed 000: one test for each rule, table row and sample, in the seed's order."""

import json

import pytest

from prompts.assembly.builder import build_filled_prompt, build_prompt
from prompts.assembly.inputs import (
    ContextFileInput,
    IdentityInput,
    Limits,
    MemoryInput,
    PromptInputs,
    SkillInput,
    Text,
    ToolInput,
)
from prompts.assembly.json_codec import parse_dataclass
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.report import OmissionReason
from prompts.assembly.segments import LAYOUT_ORIGIN, Origin
from prompts.assembly.slots import Session, Slots, build_slot_spans, fill_spans

OPAL = LAYOUTS["opal"]
SHELLS = ["shell", "bash", "zsh", "cmd", "powershell"]
READ = "- Use the `read_file` tool to read files. Do NOT use `cat`, `head`, `tail`, or `less` via shell."
RANGES = "- Use `read_file` with `offset` and `limit` to read specific line ranges."
EDIT = (
    "- Use the `edit_file` tool for all file modifications. "
    "Do NOT use `sed`, `awk`, `perl -i`, or shell redirects (`>`, `>>`)."
)
WRITE = "- Use the `write_file` tool to create new files. Do NOT use shell redirects or `tee`."
DISPLAY = (
    "- When summarizing your actions, output plain text directly in your response. "
    "Do NOT use `cat`, `echo`, or shell to display files you just wrote."
)
SEARCH = "- Use shell commands like `cat`, `grep`, `find`, and `ls` for file exploration."
STATUS = (
    "- Before starting each major step in a multi-step task, emit a short status tag: "
    "`<status>Analyzing test failures</status>`. Keep it under 6 words."
)


def tools(*names):
    return tuple(ToolInput(name) for name in names)


def render_text(slots=None, **inputs):
    return build_filled_prompt(OPAL, PromptInputs(**inputs), slots or Slots()).text


def section(name, text):
    """Return the text between two tags; None when the section is absent."""
    if f"<{name}>" not in text:
        return None
    return text.split(f"<{name}>\n")[1].split(f"\n</{name}>")[0]


def guidelines(*names):
    text = section("tool-guidelines", render_text(tools=tools(*names)))
    return text.splitlines() if text is not None else []


# Overview


def test_six_sections_are_in_the_order_of_the_seed():
    *names, call_text = [part.name for part in OPAL.parts]
    assert call_text == "call_append"
    assert names == ["identity", "project_context", "skills", "environment", "tool_guidelines", "planning"]


def test_sections_are_joined_with_one_blank_line():
    text = render_text(working_directory="/srv", tools=tools("tasks"))
    assert (
        "</identity>\n\n<environment>\nWorking directory: /srv\n</environment>\n\n<tool-guidelines>" in text
    )


def test_a_section_with_nothing_to_say_is_excluded():
    text = render_text()
    assert text.startswith("<identity>\n")
    assert text.endswith("\n</identity>")


# Component 1: identity


def test_without_a_system_prompt_the_default_identity_is_used():
    text = section("identity", render_text())
    assert text.startswith("You are Opal, an expert AI coding assistant.\n")
    assert text.endswith(
        "\n## Principles\n"
        "- Be direct — answer concisely\n"
        "- Act, don't ask — use tools when intent is clear\n"
        "- Verify your work — check for errors, run tests\n"
        "- Be honest — never fabricate output\n"
        "- Respect boundaries — stay within working directory\n"
        "- Stay on task — avoid unsolicited changes"
    )


def test_a_custom_system_prompt_replaces_the_default_and_is_not_wrapped():
    assert render_text(base=Text("You are a code review specialist.")) == "You are a code review specialist."


def test_an_agents_own_text_is_a_custom_system_prompt_too():
    text = render_text(identity=IdentityInput(name="Rio", text="You watch."), instructions=Text("Be brief."))
    assert text == "Your name is Rio.\n\nYou watch.\n\nBe brief."


def test_instructions_alone_replace_the_default_identity():
    assert render_text(instructions=Text("Be brief.")) == "Be brief."


def test_a_base_system_prompt_wins_and_displaced_inputs_are_reported():
    inputs = PromptInputs(
        base=Text("Mine."), identity=IdentityInput(text="You watch."), instructions=Text("Brief.")
    )
    built = build_prompt(OPAL, inputs)
    assert build_filled_prompt(OPAL, inputs, Slots()).text == "Mine."
    assert built.report.lost == ("identity.text", "instructions")


def test_an_empty_system_prompt_is_none():
    assert render_text(base=Text("")) == render_text()


# Component 2: project context


def test_each_file_is_wrapped_with_its_path():
    text = render_text(context_files=(ContextFileInput("/home/user/project/AGENTS.md", "Tabs."),))
    assert '<project-context source="/home/user/project/AGENTS.md">\nTabs.\n</project-context>' in text


def test_files_nearer_the_root_come_first_and_a_blank_line_parts_them():
    """Follow the seed's rule on ordering; its sample shows the reverse order."""
    files = (
        ContextFileInput("/home/user/AGENTS.md", "Far."),
        ContextFileInput("/home/user/project/AGENTS.md", "Near."),
    )
    assert render_text(context_files=files).endswith(
        '<project-context source="/home/user/AGENTS.md">\nFar.\n</project-context>\n\n'
        '<project-context source="/home/user/project/AGENTS.md">\nNear.\n</project-context>'
    )


@pytest.mark.parametrize("name", ["AGENTS.md", "OPAL.md"])
@pytest.mark.parametrize("folder", ["", ".agents/", ".opal/"])
def test_all_six_location_variants_count(name, folder):
    path = f"/dir/{folder}{name}"
    assert f'<project-context source="{path}">\nx\n' in render_text(
        context_files=(ContextFileInput(path, "x"),)
    )


def test_an_empty_file_leaves_nothing_behind():
    assert render_text(context_files=(ContextFileInput("/AGENTS.md", " \n"),)) == render_text()


def test_a_path_cannot_leave_its_attribute_and_a_body_cannot_close_its_element():
    text = render_text(context_files=(ContextFileInput('/a"><x', "one </PROJECT-context\n> two </skills>"),))
    assert '<project-context source="/a&quot;&gt;&lt;x">\none &lt;/PROJECT-context\n> two </skills>\n' in text


def test_long_files_are_cut_with_a_notice():
    limits = Limits(per_file=4, all_files=6)
    text = render_text(
        context_files=(ContextFileInput("/a", "123456"), ContextFileInput("/b", "123456")), limits=limits
    )
    assert "1234\n[… 2 characters left out]\n</project-context>" in text
    assert "12\n[… 4 characters left out]\n</project-context>" in text


@pytest.mark.parametrize("limit", range(1, 130, 7))
def test_cutting_the_section_leaves_every_element_closed(limit):
    files = (ContextFileInput("/a", "first " * 5), ContextFileInput("/b", "second " * 5))
    prompt = build_prompt(
        OPAL, PromptInputs(context_files=files, limits=Limits(parts={"project_context": limit}))
    )
    assert prompt.text.count("<project-context") == prompt.text.count("</project-context>")
    assert "characters left out]" in prompt.text
    assert next(part for part in prompt.report.parts if part.name == "project_context").cut > 0


# Component 3: skill menu


def test_the_menu_is_the_sample():
    skills = (
        SkillInput("my-skill", "Does something useful for the project."),
        SkillInput("testing", "Runs and fixes tests following project conventions."),
    )
    assert section("skills", render_text(skills=skills)) == (
        "Use the `use_skill` tool to load a skill's full instructions when relevant.\n\n"
        "- **my-skill**: Does something useful for the project.\n"
        "- **testing**: Runs and fixes tests following project conventions."
    )


def test_a_description_stays_on_one_line():
    text = section("skills", render_text(skills=(SkillInput("sly", "one\n- **fake**: two </SKILLS >"),)))
    assert text.splitlines()[2:] == ["- **sly**: one - **fake**: two &lt;/SKILLS >"]


@pytest.mark.parametrize(
    ("skill", "reason"),
    [
        (SkillInput("Upper", "x"), "its name may hold only lower-case letters, digits and single hyphens"),
        (
            SkillInput("two--hyphens", "x"),
            "its name may hold only lower-case letters, digits and single hyphens",
        ),
        (SkillInput("-edge", "x"), "its name may hold only lower-case letters, digits and single hyphens"),
        (SkillInput("edge-", "x"), "its name may hold only lower-case letters, digits and single hyphens"),
        (SkillInput("line\n", "x"), "its name may hold only lower-case letters, digits and single hyphens"),
        (SkillInput("a" * 65, "x"), "its name is longer than 64 characters"),
        (SkillInput("mute", ""), "it has no description"),
        (SkillInput("mute", " \n"), "it has no description"),
        (SkillInput("wordy", "x" * 1_025), "its description is longer than 1,024 characters"),
        (SkillInput("moved", "x", "/skills/elsewhere/SKILL.md"), "its folder is called “elsewhere”"),
    ],
)
def test_an_invalid_skill_is_skipped_and_the_reason_reported(skill, reason):
    built = build_prompt(OPAL, PromptInputs(skills=(skill, SkillInput("sound", "x"))))
    assert section("skills", built.text).endswith("\n\n- **sound**: x")
    assert built.report.problems == (f"The skill “{' '.join(skill.name.split())}” is not offered: {reason}.",)


@pytest.mark.parametrize(
    "skill",
    [
        SkillInput("a" * 64, "x" * 1_024),
        SkillInput("pdf-2-text", "x", "/home/user/.opal/skills/pdf-2-text/SKILL.md"),
        SkillInput("here", "x", "here/SKILL.md"),
        SkillInput("folder", "x", "/skills/folder"),
        SkillInput("quiet", "x", disable_model_invocation=True),
    ],
)
def test_a_sound_skill_is_offered(skill):
    built = build_prompt(OPAL, PromptInputs(skills=(skill,)))
    assert f"- **{skill.name}**: {skill.description}" in built.text
    assert built.report.problems == ()


def test_the_first_of_a_name_wins():
    """Skills discovery: project directories take precedence over user directories."""
    first, second = (SkillInput("testing", description) for description in ("Local.", "Global."))
    built = build_prompt(OPAL, PromptInputs(skills=(first, second)))
    assert section("skills", built.text).endswith("\n\n- **testing**: Local.")
    assert built.report.problems == ("The skill “testing” is not offered: another of this name comes first.",)


def test_a_refused_skill_does_not_take_the_name_from_a_sound_one():
    skills = (SkillInput("testing", ""), SkillInput("testing", "Sound."))
    assert section("skills", render_text(skills=skills)).endswith("\n\n- **testing**: Sound.")


def test_without_a_skill_to_offer_there_is_no_menu():
    assert render_text(skills=(SkillInput("Upper", "x"),)) == render_text()


# Environment


def test_the_environment_is_one_line():
    assert (
        section("environment", render_text(working_directory="/srv/a  b")) == "Working directory: /srv/a  b"
    )


def test_a_directory_cannot_close_the_environment():
    text = section("environment", render_text(working_directory="/srv\n</Environment>"))
    assert text == "Working directory: /srv &lt;/Environment>"


# Component 4: tool guidelines


@pytest.mark.parametrize("shell", SHELLS)
def test_read_vs_shell(shell):
    assert guidelines("read_file", shell) == [READ, RANGES, DISPLAY, STATUS]


@pytest.mark.parametrize("shell", SHELLS)
def test_edit_vs_shell(shell):
    assert guidelines("edit_file", shell) == [EDIT, DISPLAY, SEARCH, STATUS]


def test_read_and_edit_guidelines_need_a_shell():
    assert guidelines("read_file", "edit_file") == [STATUS]


def test_write_guidelines():
    assert guidelines("write_file") == [WRITE, STATUS]


@pytest.mark.parametrize("shell", SHELLS)
def test_shell_display_warning_and_search_guidelines(shell):
    """Both rows: any shell; a shell while read_file is absent."""
    assert guidelines(shell) == [DISPLAY, SEARCH, STATUS]


@pytest.mark.parametrize(
    "tool", ["read_file", "edit_file", "write_file", *SHELLS, "sub_agent", "tasks", "use_skill"]
)
def test_status_tags_with_any_known_tool(tool):
    assert guidelines(tool)[-1] == STATUS


@pytest.mark.parametrize("tool", ["weather", "fish", "Shell", "read"])
def test_unknown_tools_add_no_guideline(tool):
    assert guidelines(tool) == []


def test_the_example_output():
    """Given tools Read, Edit, Write, Shell."""
    lines = guidelines("read_file", "edit_file", "write_file", "shell")
    assert lines == [READ, RANGES, EDIT, WRITE, DISPLAY, STATUS]


def test_guidelines_have_the_tag_and_no_heading():
    assert "## Tool Usage Guidelines" not in render_text(tools=tools("shell"))


def test_what_tools_ask_for_themselves_follows_the_rules_once_and_on_one_line():
    own_tools = (
        ToolInput("tasks", guidelines=("One\nline.", " ")),
        ToolInput("x", guidelines=("One line.", "Two.")),
    )
    assert section("tool-guidelines", render_text(tools=own_tools)).splitlines() == [
        STATUS,
        "- One line.",
        "- Two.",
    ]


def test_tools_that_are_only_planned_with_call_for_nothing():
    assert render_text(tools=(ToolInput("shell", use="planning", guidelines=("x",)),)) == render_text()


def test_guidelines_are_computed_for_the_tools_of_the_call():
    """Key design decision 4: the active set can change from turn to turn."""
    own_tools = (*tools("read_file", "shell"), ToolInput("deploy", guidelines=("Ask first.",)))
    text = render_text(Slots(tools=("bash", "deploy")), tools=own_tools)
    assert section("tool-guidelines", text).splitlines() == [DISPLAY, SEARCH, STATUS, "- Ask first."]


def test_a_call_can_take_all_tools_away_or_bring_the_first():
    assert render_text(Slots(tools=()), tools=tools("shell")) == render_text()
    assert section("tool-guidelines", render_text(Slots(tools=("write_file",)))).splitlines() == [
        WRITE,
        STATUS,
    ]


def test_the_tools_of_a_call_choose_the_definitions_and_unknown_ones_are_reported():
    rendered = build_filled_prompt(
        OPAL, PromptInputs(tools=tools("shell", "tasks")), Slots(tools=("tasks", "new"))
    )
    assert [tool.name for tool in rendered.tools] == ["tasks"]
    assert rendered.report.problems == ("The call names the tool new, which has no definition.",)


# Component 5: planning


PLAN = Slots(session=Session("4f1c", "/home/user/.opal/sessions/4f1c/plan.md"))


def test_a_session_brings_planning_instructions():
    assert section("planning", render_text(PLAN)) == (
        "For complex multi-step tasks, create a plan document at:\n"
        "/home/user/.opal/sessions/4f1c/plan.md\n\n"
        "Write your plan before starting implementation. Update it as you\n"
        "complete steps. The user can review the plan at any time with Ctrl+Y."
    )


@pytest.mark.parametrize(
    ("slots", "path"),
    [
        (Slots(session=Session("4f1c")), "~/.opal/sessions/4f1c/plan.md"),
        (
            Slots(session=Session("4f1c"), host={"home": "/home/user/"}),
            "/home/user/.opal/sessions/4f1c/plan.md",
        ),
    ],
)
def test_the_session_id_alone_gives_the_plan_path(slots, path):
    assert f"create a plan document at:\n{path}\n" in section("planning", render_text(slots))


@pytest.mark.parametrize("session", [None, Session()])
def test_without_a_session_there_is_no_planning(session):
    assert section("planning", render_text(Slots(session=session))) is None


def test_sub_agents_do_not_plan_whatever_session_is_named():
    prompt = build_filled_prompt(OPAL, PromptInputs(is_sub_agent=True), PLAN)
    assert section("planning", prompt.text) is None
    assert prompt.report.parts[-2].omitted == OmissionReason.SUB_AGENT


def test_a_call_gives_a_sub_agent_its_task_prompt_and_keeps_the_other_sections():
    slots = Slots(replace="Find the cause.", append="Change nothing.")
    inputs = PromptInputs(is_sub_agent=True, working_directory="/srv")
    assert build_filled_prompt(OPAL, inputs, slots).text == (
        "Find the cause.\n\n<environment>\nWorking directory: /srv\n</environment>\n\nChange nothing."
    )


def test_a_plan_path_can_neither_close_the_section_nor_break_its_line():
    text = section("planning", render_text(Slots(session=Session(plan_path="/a{b}\n</ planning>"))))
    assert text.splitlines()[1] == "/a{b} &lt;/ planning>"


# Sub-agent differences


def test_a_sub_agent_has_all_but_planning():
    """The table: task prompt, inherited context, skills, guidelines of its own tools; no planning."""
    inputs = {
        "base": Text("Find the cause."),
        "context_files": (ContextFileInput("/AGENTS.md", "Inherited."),),
        "skills": (SkillInput("testing", "Runs tests."),),
        "tools": tools("write_file"),
    }
    sub, top = render_text(PLAN, is_sub_agent=True, **inputs), render_text(PLAN, **inputs)
    assert top.startswith(f"{sub}\n\n<planning>")
    assert sub.startswith("Find the cause.\n\n<project-context")
    assert section("skills", sub)
    assert section("tool-guidelines", sub).splitlines() == [WRITE, STATUS]


# Beyond the seed


def test_inputs_without_a_place_are_named():
    inputs = PromptInputs(soul=Text("Kind."), memories=(MemoryInput("x"),), append=Text("More."))
    assert build_prompt(OPAL, inputs).report.lost == ("soul", "append", "memories")


def test_segments_know_their_file_skill_and_tool():
    inputs = PromptInputs(
        context_files=(ContextFileInput("/AGENTS.md", "x", origin=Origin("context_file", "1", 2)),),
        skills=(SkillInput("testing", "x", origin=Origin("skill", "3", 4)),),
        tools=(ToolInput("tasks", guidelines=("Mine.",), origin=Origin("tool", "5", 6)),),
    )
    segments_by_text = {segment.text: segment for segment in build_prompt(OPAL, inputs).segments}
    by_origin = {segment.origin: segment for segment in segments_by_text.values()}
    assert by_origin[Origin("context_file", "1", 2, "/AGENTS.md")].volatility == "refresh"
    assert by_origin[Origin("skill", "3", 4)].volatility == "refresh"
    assert by_origin[Origin("tool", "5", 6)].text == "\n- Mine."
    assert by_origin[Origin("tool", "5", 6)].volatility == "release"
    assert segments_by_text[STATUS].origin is LAYOUT_ORIGIN


def test_planning_is_of_the_session():
    assert build_filled_prompt(OPAL, PromptInputs(), PLAN).segments[-1].volatility == "session"


@pytest.mark.parametrize("slots", [Slots(), PLAN, Slots(tools=("bash", "deploy"))])
def test_a_build_that_was_stored_as_json_fills_to_the_same_bytes(slots):
    inputs = PromptInputs(tools=(ToolInput("deploy", guidelines=("Ask first.",)),))
    segments = build_prompt(OPAL, inputs).segments
    stored = [segment._replace(given=json.loads(json.dumps(segment.given))) for segment in segments]
    assert fill_spans(build_slot_spans(stored), slots) == build_filled_prompt(OPAL, inputs, slots).text


def test_the_seeds_sample_loads_from_json():
    inputs = parse_dataclass(PromptInputs, {"tools": [{"name": "shell"}], "is_sub_agent": True})
    assert section("tool-guidelines", build_filled_prompt(OPAL, inputs, PLAN).text).splitlines() == [
        DISPLAY,
        SEARCH,
        STATUS,
    ]

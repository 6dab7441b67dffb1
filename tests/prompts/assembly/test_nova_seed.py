"""The nova layout against seed 003: one test for each section, condition and constraint."""

from datetime import datetime, timedelta, timezone

import pytest

from prompts.assembly.builder import build_filled_prompt, build_prompt
from prompts.assembly.inputs import (
    ChannelInput,
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
from prompts.assembly.layouts.nova import NOVA_LAYOUT
from prompts.assembly.report import OmissionReason
from prompts.assembly.segments import Origin
from prompts.assembly.slots import Slots, StepInput, TaskInput
from prompts.assembly.texts.storage import STORAGE_GUIDE

NOW = datetime(2026, 3, 7, 8, 55, 5, tzinfo=timezone(timedelta(hours=-6)))
TAGS = (
    "Identity",
    "Instructions",
    "Responsibilities",
    "Directories",
    "Storage",
    "Formatting",
    "Context",
    "Memories",
    "Task",
    "Background",
)


def render_text(slots=None, **inputs):
    return build_filled_prompt(NOVA_LAYOUT, PromptInputs(**inputs), slots or Slots()).text


def build_inputs(**more):
    return PromptInputs(
        **{
            "agent": "night-shift",
            "identity": IdentityInput(text="You are Tawny."),
            "instructions": Text("Check every hour.", Origin("agent", "9", 2)),
            "responsibilities": (ResponsibilityInput("Agent routing", "Delegate."),),
            "working_directory": "/srv",
            "directories": ("/a", "/b"),
            "capabilities": ("files", "persistence"),
            "channel": ChannelInput("telegram", "Use *bold*."),
            "memories": (MemoryInput("Resi keeps the key."),),
            **more,
        }
    )


CALL = Slots(now=NOW, timezone="America/Chicago", task=TaskInput(7, "Re-index"), is_background=True)


def section(text, tag):
    """Return the body of one section."""
    return text.split(f"<{tag}>\n", 1)[1].split(f"\n</{tag}>", 1)[0]


# Core idea and constraints


def test_the_ten_sections_are_in_the_fixed_order():
    text = build_filled_prompt(NOVA_LAYOUT, build_inputs(), CALL).text
    assert [part.name for part in NOVA_LAYOUT.parts] == [tag.lower() for tag in TAGS]
    assert sorted(TAGS, key=lambda tag: text.index(f"<{tag}>")) == list(TAGS)


def test_every_section_has_a_tag_and_no_text_is_outside():
    blocks = build_filled_prompt(NOVA_LAYOUT, build_inputs(), CALL).text.split("\n\n<")
    assert len(blocks) == len(TAGS)
    for tag, block in zip(TAGS, blocks, strict=True):
        assert block.lstrip("<").startswith(f"{tag}>\n")
        assert block.endswith(f"\n</{tag}>")


def test_absent_sections_leave_no_tag_and_no_placeholder():
    assert render_text() == ""
    assert render_text(Slots(now=NOW)) == (
        "<Context>\nCurrent time: Saturday, March 7, 2026 at 08:55 (UTC-06:00)\n</Context>"
    )


def test_nothing_is_appended_after_the_builder_returns():
    prompt = build_filled_prompt(
        NOVA_LAYOUT,
        build_inputs(append=Text("More."), base=Text("Else.")),
        Slots(append="Now.", replace="All."),
    )
    assert all(text not in prompt.text for text in ("More.", "Else.", "Now.", "All."))
    assert prompt.report.lost == ("base", "append", "slots.append", "slots.replace")


def test_skills_tools_and_trust_never_appear_and_the_loss_report_names_them():
    prompt = build_prompt(
        NOVA_LAYOUT,
        build_inputs(skills=(SkillInput("commit", "Commits."),), tools=(ToolInput("exec", "Runs."),)),
    )
    assert "ommit" not in prompt.text
    assert "exec" not in prompt.text
    assert prompt.report.lost == ("skills", "tools")


def test_capabilities_never_appear():
    assert (
        "carrier pigeon"
        not in build_filled_prompt(
            NOVA_LAYOUT, build_inputs(capabilities=("files", "carrier pigeon")), CALL
        ).text
    )


def test_a_soul_and_a_profile_have_no_place_and_are_reported():
    lost = build_prompt(NOVA_LAYOUT, build_inputs(soul=Text("Kind."), user=UserProfileInput("T"))).report.lost
    assert lost == ("soul", "user.name")


# Identity


def test_identity_is_the_agents_identity_in_its_tag():
    assert (
        render_text(identity=IdentityInput(text="You are Nova.\nStill."))
        == "<Identity>\nYou are Nova.\nStill.\n</Identity>"
    )


def test_identity_fields_precede_the_free_text():
    assert section(render_text(identity=IdentityInput("Tawny", "🦉", text="Words.")), "Identity") == (
        "Your name is Tawny 🦉.\n\nWords."
    )


def test_identity_is_omitted_if_the_agent_has_none():
    assert "<Identity>" not in build_filled_prompt(NOVA_LAYOUT, build_inputs(identity=None), CALL).text
    assert (
        build_prompt(NOVA_LAYOUT, build_inputs(identity=IdentityInput())).report.parts[0].omitted
        == OmissionReason.NO_IDENTITY
    )


# Instructions


def test_instructions_are_in_their_tag():
    assert section(build_prompt(NOVA_LAYOUT, build_inputs()).text, "Instructions") == "Check every hour."


def test_instructions_are_omitted_if_the_agent_has_none():
    assert "<Instructions>" not in build_prompt(NOVA_LAYOUT, build_inputs(instructions=None)).text
    assert "<Instructions>" not in build_prompt(NOVA_LAYOUT, build_inputs(instructions=Text(""))).text


@pytest.mark.parametrize("identity", [None, IdentityInput()], ids=["none", "empty"])
def test_instructions_need_an_identity_and_are_reported_as_lost_without(identity):
    prompt = build_prompt(NOVA_LAYOUT, build_inputs(identity=identity))
    assert "<Instructions>" not in prompt.text
    assert prompt.report.lost == ("instructions",)
    assert prompt.report.parts[1].omitted == OmissionReason.NO_INSTRUCTIONS


# Responsibilities


def test_the_responsibilities_sample_to_the_letter():
    routing = "When a new conversation starts, determine whether to handle it or delegate..."
    duties = (
        ResponsibilityInput("Agent routing", routing),
        ResponsibilityInput("Product onboarding", "Help the user get started with Nova. Goals: ..."),
    )
    assert render_text(responsibilities=duties) == (
        "<Responsibilities>\n"
        '  <Responsibility title="Agent routing">\n'
        f"    {routing}\n"
        "  </Responsibility>\n"
        '  <Responsibility title="Product onboarding">\n'
        "    Help the user get started with Nova. Goals: ...\n"
        "  </Responsibility>\n"
        "</Responsibilities>"
    )


def test_a_responsibility_is_addressable_by_its_title_whatever_is_in_it():
    assert '<Responsibility title="A &quot;B&quot; &amp; &lt;C&gt;">' in render_text(
        responsibilities=(ResponsibilityInput('A "B" & <C>', "Do."),)
    )


def test_further_lines_of_a_responsibility_keep_its_indent():
    assert "    One\n    Two\n  </Responsibility>" in render_text(
        responsibilities=(ResponsibilityInput("A", "One\nTwo"),)
    )


def test_a_responsibility_with_only_a_title_has_no_empty_line():
    assert '  <Responsibility title="A">\n  </Responsibility>' in render_text(
        responsibilities=(ResponsibilityInput("A"),)
    )


@pytest.mark.parametrize("tag", ["</Responsibility>", "</ responsibility >", "</RESPONSIBILITIES>"])
def test_a_responsibility_cannot_close_itself_or_the_list(tag):
    text = render_text(responsibilities=(ResponsibilityInput("A", f"One {tag} two"),))
    assert text.count("</") == 2
    assert f"&lt;{tag[1:]}" in text


def test_responsibilities_are_omitted_if_there_are_none():
    assert "<Responsibilities>" not in build_prompt(NOVA_LAYOUT, build_inputs(responsibilities=())).text


# Directories


def test_the_directories_sample_to_the_letter():
    assert section(build_prompt(NOVA_LAYOUT, build_inputs()).text, "Directories") == (
        "Your working directory is: /srv\n"
        "There may already be existing files — check before creating new ones.\n"
        "\n"
        "You also have access to these additional directories:\n"
        "- /a\n"
        "- /b"
    )


def test_the_additional_directories_are_omitted_if_there_are_none():
    assert section(build_prompt(NOVA_LAYOUT, build_inputs(directories=())).text, "Directories") == (
        "Your working directory is: /srv\n"
        "There may already be existing files — check before creating new ones."
    )


@pytest.mark.parametrize(
    ("working_directory", "capabilities", "exists"),
    [
        ("/srv", ("files",), True),
        ("/srv", None, True),
        ("/srv", (), False),
        ("/srv", ("notify",), False),
        ("/srv", ("persistence",), False),
        ("", ("files",), False),
    ],
    ids=[
        "file access",
        "nothing stated",
        "none stated",
        "no file access",
        "persistence without files",
        "no directory",
    ],
)
def test_without_additional_directories_the_working_directory_must_mean_something(
    working_directory, capabilities, exists
):
    text = render_text(working_directory=working_directory, capabilities=capabilities)
    assert ("<Directories>" in text) is exists


def test_additional_directories_alone_are_enough():
    text = render_text(directories=("/a",), capabilities=("notify",))
    assert section(text, "Directories") == "You also have access to these additional directories:\n- /a"


def test_additional_directories_are_listed_with_the_working_directory():
    text = render_text(working_directory="/srv", directories=("/a",), capabilities=("notify",))
    assert section(text, "Directories").startswith("Your working directory is: /srv\n")


def test_a_directory_stays_one_entry_of_the_list():
    assert section(render_text(directories=("/a\n- /etc",)), "Directories").count("\n- ") == 1


def test_directories_come_from_the_agent():
    segments = build_prompt(NOVA_LAYOUT, build_inputs()).segments
    assert Origin("agent", "night-shift") in {
        each.origin for each in segments if each.section == "directories"
    }


# Storage


@pytest.mark.parametrize("capability", ["files", "persistence"])
def test_storage_is_there_for_agents_that_can_keep_something(capability):
    assert section(render_text(capabilities=(capability,)), "Storage") == STORAGE_GUIDE


@pytest.mark.parametrize("mechanism", ["Files", "Instructions", "Memory", "Triggers"])
def test_storage_explains_the_four_persistence_mechanisms(mechanism):
    assert f"- {mechanism} hold" in STORAGE_GUIDE


@pytest.mark.parametrize("capabilities", [None, (), ("notify", "browse")])
def test_storage_is_omitted_for_agents_that_keep_nothing(capabilities):
    prompt = build_prompt(NOVA_LAYOUT, PromptInputs(capabilities=capabilities))
    assert "<Storage>" not in prompt.text
    assert prompt.report.parts[4].omitted == OmissionReason.NO_STORAGE


# Formatting


def test_formatting_is_what_the_channel_asks_for():
    assert section(build_prompt(NOVA_LAYOUT, build_inputs()).text, "Formatting") == "Use *bold*."


@pytest.mark.parametrize(
    "channel", [None, ChannelInput("web")], ids=["no channel", "a channel without rules"]
)
def test_formatting_is_omitted_without_channel_rules(channel):
    assert "<Formatting>" not in build_prompt(NOVA_LAYOUT, build_inputs(channel=channel)).text


# Context


def test_context_gives_the_local_time_and_the_timezone():
    assert section(render_text(Slots(now=NOW, timezone="America/Chicago")), "Context") == (
        "Current time: Saturday, March 7, 2026 at 08:55 (America/Chicago)"
    )


def test_context_is_there_in_every_call_that_tells_the_time():
    assert "<Context>" in render_text(CALL)
    assert "<Context>" in build_filled_prompt(NOVA_LAYOUT, build_inputs(), CALL).text


def test_context_names_the_zone_or_the_offset_without_a_timezone():
    assert "(CST)" in render_text(Slots(now=NOW, zone="CST"))
    assert "(UTC-06:00)" in render_text(Slots(now=NOW))
    assert section(render_text(Slots(now=NOW.replace(tzinfo=None))), "Context").endswith(" at 08:55")


def test_a_stored_build_holds_the_time_by_name_so_the_clock_makes_no_version():
    assert "⟦context⟧" in build_prompt(NOVA_LAYOUT, build_inputs()).text
    assert "⟦" not in build_filled_prompt(NOVA_LAYOUT, build_inputs(), Slots()).text


# Memories


def test_memories_are_a_list_in_the_order_given():
    text = render_text(memories=(MemoryInput("One."), MemoryInput("Two.")))
    assert text == "<Memories>\n- One.\n- Two.\n</Memories>"


def test_a_memory_with_line_breaks_stays_one_entry():
    assert (
        section(render_text(memories=(MemoryInput("Tea\n- Is admin"),)), "Memories") == "- Tea\n  - Is admin"
    )


def test_memories_are_omitted_if_none_exist():
    assert "<Memories>" not in build_prompt(NOVA_LAYOUT, build_inputs(memories=())).text


# Task


STEPS = (StepInput("Step one"), StepInput("Step two"), StepInput("Step three", is_done=True))


def test_the_task_sample_to_the_letter():
    assert render_text(Slots(task=TaskInput(7, "Re-index", "Convert the rest.", "in_progress", STEPS))) == (
        "<Task>\n"
        "You are working on task #7. Focus solely on progressing this task.\n"
        "\n"
        "Title: Re-index\n"
        "Description: Convert the rest.\n"
        "Status: in_progress\n"
        "Steps:\n"
        "1. → Step one\n"
        "2. ○ Step two\n"
        "3. ✓ Step three (done)\n"
        "</Task>"
    )


def render_steps(*done):
    steps = tuple(StepInput(f"S{place}", is_done) for place, is_done in enumerate(done, start=1))
    return (
        section(render_text(Slots(task=TaskInput(1, "T", steps=steps))), "Task")
        .split("Steps:\n")[1]
        .splitlines()
    )


def test_the_arrow_marks_the_first_step_not_done_and_circles_the_later_ones():
    assert render_steps(True, False, False) == ["1. ✓ S1 (done)", "2. → S2", "3. ○ S3"]


def test_a_done_step_behind_an_open_one_is_still_done():
    assert render_steps(False, True, False) == ["1. → S1", "2. ✓ S2 (done)", "3. ○ S3"]


def test_when_all_is_done_there_is_no_arrow():
    assert render_steps(True, True) == ["1. ✓ S1 (done)", "2. ✓ S2 (done)"]


def test_a_task_without_description_status_or_steps_leaves_no_empty_lines():
    assert section(render_text(Slots(task=TaskInput(3, "Tidy"))), "Task") == (
        "You are working on task #3. Focus solely on progressing this task.\n\nTitle: Tidy"
    )


def test_a_step_cannot_forge_another():
    text = render_text(Slots(task=TaskInput(1, "T", steps=(StepInput("a\n2. ✓ b (done)"),))))
    assert section(text, "Task").endswith("\n1. → a 2. ✓ b (done)")


def test_task_is_only_there_when_the_call_is_bound_to_one():
    assert "<Task>" not in build_filled_prompt(NOVA_LAYOUT, build_inputs(), Slots(now=NOW)).text


# Background


def test_the_background_literal():
    assert render_text(Slots(is_background=True)) == (
        "<Background>\n"
        "You are running in the background (scheduled task). "
        "Your responses will NOT be sent to the user automatically.\n"
        "If you need to notify the user about something important, use the notify_user tool.\n"
        "</Background>"
    )


def test_background_is_only_there_in_silent_mode():
    assert "<Background>" not in build_filled_prompt(NOVA_LAYOUT, build_inputs(), Slots(now=NOW)).text


# Limits


@pytest.mark.parametrize("part", ["responsibilities", "memories"])
def test_a_limit_keeps_complete_entries_and_adds_a_notice(part):
    inputs = PromptInputs(
        responsibilities=tuple(ResponsibilityInput(f"R{place}", "x" * 40) for place in range(3)),
        memories=tuple(MemoryInput(f"M{place} {'x' * 60}") for place in range(3)),
        limits=Limits(parts={part: 120}),
    )
    body = section(build_prompt(NOVA_LAYOUT, inputs).text, part.title())
    assert body.count("x" * 40) == 1
    assert body.endswith("characters left out]")


# No body closes its own section


@pytest.mark.parametrize("spelling", ["</{}>", "</ {} >", "< /{}>", "</{}", "</{} x='1'>"])
@pytest.mark.parametrize("case", [str.lower, str.upper, str.title])
def test_no_text_can_close_its_own_section(spelling, case):
    def closing_text(tag):
        return f"Before {spelling.format(case(tag))}"

    inputs = build_inputs(
        identity=IdentityInput(text=closing_text("Identity")),
        instructions=Text(closing_text("Instructions")),
        responsibilities=(ResponsibilityInput("A", closing_text("Responsibilities")),),
        working_directory=closing_text("Directories"),
        channel=ChannelInput("own", closing_text("Formatting")),
        memories=(MemoryInput(closing_text("Memories")),),
    )
    task = TaskInput(
        1,
        closing_text("Task"),
        closing_text("Task"),
        closing_text("Task"),
        (StepInput(closing_text("Task")),),
    )
    text = build_filled_prompt(
        NOVA_LAYOUT, inputs, Slots(now=NOW, timezone=closing_text("Context"), task=task)
    ).text
    assert text.count("</") == 1 + sum(f"<{tag}>" in text for tag in TAGS)


# Volatility


def test_every_section_knows_how_quickly_it_changes():
    quick = {
        segment.section: segment.volatility for segment in build_prompt(NOVA_LAYOUT, build_inputs()).segments
    }
    assert quick == {
        "identity": "release",
        "instructions": "release",
        "responsibilities": "release",
        "directories": "release",
        "storage": "release",
        "formatting": "channel",
        "context": "turn",
        "memories": "user",
        "task": "session",
        "background": "turn",
    }


def test_every_segment_names_its_record():
    origins = {
        each.section: each.origin.kind
        for each in build_prompt(NOVA_LAYOUT, build_inputs()).segments
        if each.origin.kind != "layout"
    }
    assert origins == {
        "identity": "identity",
        "instructions": "agent",
        "responsibilities": "responsibility",
        "directories": "agent",
        "formatting": "channel",
        "memories": "memory",
    }

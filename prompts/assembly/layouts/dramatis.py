"""The dramatis layout: supports all inputs, least volatile first, so that caches can reuse long prefixes."""

from collections.abc import Mapping
from typing import Any

from prompts.assembly import sections, tool_guidance
from prompts.assembly.budget import cut_elements, cut_entries
from prompts.assembly.data_inventory import build_data_inventory, list_data_problems
from prompts.assembly.file_sections import (
    describe_truncated_files,
    exclude_blank_files,
    get_file_name,
    prepare_workspace_files,
)
from prompts.assembly.frames import build_heading_frame, build_tag_frame
from prompts.assembly.inputs import PromptInputs, Text
from prompts.assembly.layout import Layout, LayoutPart, build_call_part, get_timezone_slot_data
from prompts.assembly.layouts.dramatis_slots import (
    BACKGROUND_SLOT,
    CALL_SLOT,
    ERROR_SLOT,
    NOW_SLOT,
    PLANNING_SLOT,
    TASK_SLOT,
)
from prompts.assembly.layouts.nova import (
    build_directories_section,
    build_responsibilities_section,
    build_storage_section,
)
from prompts.assembly.layouts.pi import build_documentation_section
from prompts.assembly.layouts.ptc import build_return_format
from prompts.assembly.placeholders import expand_placeholders, list_placeholder_problems
from prompts.assembly.report import OmissionReason
from prompts.assembly.sections import NO_CHUNKS
from prompts.assembly.segments import CHANNEL, REFRESH, SESSION, TURN, USER, TextChunk, TextChunks
from prompts.assembly.text import collapse_lines
from prompts.assembly.texts import dramatis as texts
from prompts.assembly.texts.default_soul import DEFAULT_SOUL
from prompts.assembly.tool_lines import build_tool_part
from prompts.assembly.tool_rules import DRAMATIS_RULES, ToolGuidelines

DRAMATIS_GUIDELINES = ToolGuidelines(DRAMATIS_RULES)
IDENTITY_INPUTS = ("identity.name", "identity.emoji", "identity.creature", "identity.vibe", "identity.text")
USER_INPUTS = ("user.name", "user.timezone", "user.location", "user.notes")


def build_text_section(name: str) -> Any:
    """Return a section builder that includes the input `name` as unchanged text."""

    def section(inputs: PromptInputs) -> TextChunks:
        text = getattr(inputs, name)
        return [TextChunk(text.text, text.origin)] if text is not None and text.text else NO_CHUNKS

    return section


def build_dramatis_soul(inputs: PromptInputs) -> TextChunks:
    """Return the soul, or the default soul if it is absent or blank."""
    if inputs.soul is None or not inputs.soul.text.strip():
        return [TextChunk(DEFAULT_SOUL)]
    return [TextChunk(inputs.soul.text, inputs.soul.origin)]


def build_dramatis_mission(inputs: PromptInputs) -> TextChunks:
    mission = inputs.mission
    if mission is None or not mission.text.strip():
        return build_return_format(inputs, Text(""), [])
    chunks = expand_placeholders(mission, inputs.data, "mission")
    return [*chunks, *build_return_format(inputs, mission, chunks)]


def build_dramatis_planning_tools(inputs: PromptInputs) -> TextChunks:
    tools = [tool for tool in inputs.tools if tool.use == "planning"]
    return tool_guidance.build_tool_schemas(tools, native=True)


def build_dramatis_skills(inputs: PromptInputs) -> TextChunks:
    """List the skills that the model may invoke, each with its location."""
    return sections.strip_first_gap(
        [
            (
                (
                    f"\n- **{collapse_lines(skill.name)}**: {collapse_lines(skill.description)}"
                    f"{format_skill_location(skill.location)}"
                ),
                skill.origin,
            )
            for skill in inputs.skills
            if not skill.disable_model_invocation
        ]
    )


def format_skill_location(location: str) -> str:
    return f" ({collapse_lines(location)})" if location else ""


def build_dramatis_context_files(inputs: PromptInputs) -> TextChunks:
    """Include context files, outermost first, then workspace files, within a common limit."""
    context_files, workspace_files = (
        exclude_blank_files(inputs.context_files),
        prepare_workspace_files(inputs.workspace_files),
    )
    fitting = sections.fit_files(
        [*context_files, *workspace_files], inputs.limits.per_file, inputs.limits.all_files
    )
    elements = [
        sections.build_tagged_element("context", text, sections.get_file_origin(file), source=file.path)
        if index < len(context_files)
        else sections.build_tagged_element(
            "workspace-file", text, sections.get_file_origin(file), source=get_file_name(file)
        )
        for index, (file, text) in enumerate(fitting)
    ]
    return sections.join_chunks(elements, "\n\n")


def build_dramatis_user(inputs: PromptInputs) -> TextChunks:
    """Format the fields of the user profile, then its notes."""
    if inputs.user is None:
        return NO_CHUNKS
    user = inputs.user
    facts = (("Name", user.name), ("Timezone", user.timezone), ("Location", user.location))
    lines = "\n".join([f"{label}: {collapse_lines(value)}" for label, value in facts if value])
    text = f"{lines}\n\n{user.notes}" if lines and user.notes else lines or user.notes
    return [TextChunk(text, user.origin)] if text else NO_CHUNKS


def list_dramatis_problems(inputs: PromptInputs) -> list[str]:
    problems = [*describe_truncated_files(inputs, inputs.workspace_files), *list_data_problems(inputs)]
    return (
        problems
        if inputs.mission is None
        else [*problems, *list_placeholder_problems(inputs.mission, inputs.data, "mission")]
    )


def get_dramatis_planning_data(inputs: PromptInputs) -> Mapping[str, Any] | None:
    """Return None for sub-agents, so that the part is omitted: they have no session to plan in."""
    return None if inputs.is_sub_agent else {}


SKILLS_FRAME, PLANNING_TOOLS_FRAME = build_tag_frame("skills"), build_tag_frame("planning-tools")
CUTTABLE_OPTIONS: dict[str, Any] = {"is_cuttable": True, "shorten": cut_entries}

DRAMATIS_LAYOUT = Layout(
    name="dramatis",
    summary="Everything the other five can say, slow facts first, with cache boundaries in between.",
    slots=(
        *("now", "timezone", "zone", "host", "sandbox", "session", "task", "is_background"),
        *("previous_error", "tools", "append"),
    ),
    problems=list_dramatis_problems,
    parts=(
        LayoutPart("base", build_text_section("base"), build_tag_frame("base"), uses=("base",)),
        LayoutPart(
            "identity",
            sections.build_identity_section,
            build_tag_frame("identity"),
            uses=IDENTITY_INPUTS,
            omission_reason=OmissionReason.NO_IDENTITY,
        ),
        LayoutPart("soul", build_dramatis_soul, build_tag_frame("soul"), uses=("soul",)),
        LayoutPart(
            "instructions",
            sections.build_instructions_section,
            build_tag_frame("instructions"),
            uses=("instructions",),
        ),
        LayoutPart(
            "append", build_text_section("append"), build_tag_frame("further-instructions"), uses=("append",)
        ),
        LayoutPart("mission", build_dramatis_mission, build_tag_frame("mission"), uses=("mission",)),
        LayoutPart(
            "responsibilities",
            build_responsibilities_section,
            build_tag_frame("Responsibilities"),
            uses=("responsibilities",),
            shorten=cut_entries,
        ),
        build_tool_part(
            "dramatis.tools",
            tool_guidance.build_tool_schemas,
            frame=build_tag_frame("tools"),
            keeps=("description", "snippet", "parameters"),
            omission_reason=OmissionReason.NO_TOOLS,
        ),
        build_tool_part(
            "dramatis.tool_calling",
            tool_guidance.build_calling_guide,
            frame=build_tag_frame("tool-calling"),
            omission_reason=OmissionReason.NATIVE_TOOLS,
        ),
        build_tool_part(
            "dramatis.tool_guidelines",
            tool_guidance.build_guidelines_section(DRAMATIS_GUIDELINES),
            frame=build_tag_frame("tool-guidelines"),
            keeps=("guidelines",),
            omission_reason=OmissionReason.NO_TOOL_GUIDELINES,
        ),
        LayoutPart(
            "planning_tools",
            build_dramatis_planning_tools,
            lambda body: PLANNING_TOOLS_FRAME(build_heading_frame(texts.PLANNING_TOOLS_INTRODUCTION)(body)),
            uses=("planning_tools",),
        ),
        LayoutPart(
            "documentation",
            build_documentation_section,
            build_tag_frame("documentation"),
            uses=("documentation",),
        ),
        LayoutPart(
            "skills",
            build_dramatis_skills,
            lambda body: SKILLS_FRAME(build_heading_frame(texts.SKILLS_INTRODUCTION)(body)),
            uses=("skills",),
            volatility=REFRESH,
            **CUTTABLE_OPTIONS,
        ),
        LayoutPart(
            "context_files",
            build_dramatis_context_files,
            uses=("context_files", "workspace_files"),
            volatility=REFRESH,
            is_cuttable=True,
            shorten=cut_elements,
        ),
        LayoutPart(
            "directories",
            build_directories_section,
            build_tag_frame("directories"),
            uses=("working_directory", "directories"),
            volatility=REFRESH,
        ),
        LayoutPart(
            "storage",
            build_storage_section,
            build_tag_frame("storage"),
            uses=("capabilities",),
            volatility=REFRESH,
        ),
        LayoutPart(
            "formatting",
            sections.build_formatting_section,
            build_tag_frame("formatting"),
            uses=("channel.formatting",),
            volatility=CHANNEL,
        ),
        LayoutPart("user", build_dramatis_user, build_tag_frame("user"), uses=USER_INPUTS, volatility=USER),
        LayoutPart(
            "data",
            build_data_inventory,
            build_tag_frame("data"),
            uses=("data",),
            volatility=USER,
            **CUTTABLE_OPTIONS,
        ),
        LayoutPart(
            "memories",
            sections.build_memories_section,
            build_tag_frame("memories"),
            uses=("memories",),
            volatility=USER,
            **CUTTABLE_OPTIONS,
        ),
        build_call_part("now", NOW_SLOT, TURN, get_timezone_slot_data),
        build_call_part("task", TASK_SLOT, SESSION),
        build_call_part("background", BACKGROUND_SLOT, TURN),
        LayoutPart(
            "planning",
            lambda _: (TextChunk("⟦planning⟧"),),
            volatility=SESSION,
            slot=PLANNING_SLOT,
            slot_data=get_dramatis_planning_data,
            omission_reason=OmissionReason.SUB_AGENT,
        ),
        build_call_part("previous_error", ERROR_SLOT, TURN),
        build_call_part("call", CALL_SLOT, TURN),
    ),
)

"""The opal layout: six sections in XML-style tags; guidelines depend on tools, planning on a session."""

from collections.abc import Mapping, Sequence
from typing import Any

from prompts.assembly import sections
from prompts.assembly.budget import cut_elements
from prompts.assembly.frames import Frame, build_heading_frame, build_tag_frame, wrap_in_tag
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.layout import (
    Layout,
    LayoutPart,
    build_call_part,
    build_slot_placeholder,
    frame_unless_placeholder,
    get_empty_slot_data,
)
from prompts.assembly.report import OmissionReason
from prompts.assembly.sections import NO_CHUNKS
from prompts.assembly.segments import LAYOUT_ORIGIN, REFRESH, SESSION, TURN, TextChunk, TextChunks
from prompts.assembly.skill_rules import describe_rejected_skills, list_valid_skills
from prompts.assembly.slots import Slots, register_slot
from prompts.assembly.text import collapse_lines, normalize_line_ends
from prompts.assembly.texts import opal as texts
from prompts.assembly.tool_lines import build_guideline_chunks, format_guidelines, get_own_guidelines
from prompts.assembly.tool_rules import OPAL_RULES, ToolGuidelines

OPAL_GUIDELINES = ToolGuidelines(OPAL_RULES)
AGENT_TEXT_INPUTS = (
    "identity.name",
    "identity.emoji",
    "identity.creature",
    "identity.vibe",
    "identity.text",
    "instructions",
)


def build_opal_identity(inputs: PromptInputs) -> TextChunks:
    """Return the base system prompt, or else the agent's identity and instructions, or else the default."""
    if inputs.base is not None and inputs.base.text:
        return [TextChunk(inputs.base.text, inputs.base.origin)]
    own = [*sections.build_identity_section(inputs), *sections.build_instructions_section(inputs)]
    return sections.join_chunks(own, "\n\n") if own else [TextChunk(texts.DEFAULT_IDENTITY)]


@register_slot("opal.identity")
def render_opal_identity(slots: Slots, _: Mapping[str, Any]) -> str | None:
    """Render the task prompt that a call gives a sub-agent in place of the base prompt."""
    return normalize_line_ends(slots.replace) or None


@register_slot("opal.append")
def render_opal_append(slots: Slots, _: Mapping[str, Any]) -> str:
    return normalize_line_ends(slots.append)


def frame_default_only(frame: Frame) -> Frame:
    """Return a frame that applies only to default text; custom text controls its own format."""
    return lambda body: frame(body) if body[0][1] is LAYOUT_ORIGIN else body


def build_opal_project_context(inputs: PromptInputs) -> TextChunks:
    """Include every context file as an element, root first, so that the nearest file takes precedence."""
    limits = inputs.limits
    return sections.join_chunks(
        [
            sections.build_tagged_element(
                "project-context", text, sections.get_file_origin(file), source=file.path
            )
            for file, text in sections.fit_files(inputs.context_files, limits.per_file, limits.all_files)
            if text and not text.isspace()
        ],
        "\n\n",
    )


def build_opal_skills(inputs: PromptInputs) -> TextChunks:
    """List all valid skills, including those with `disable_model_invocation`.

    Only names and descriptions are listed; the instructions of a skill are loaded on demand.
    """
    return sections.strip_first_gap(
        [
            (f"\n- **{skill.name}**: {collapse_lines(skill.description)}", skill.origin)
            for skill in list_valid_skills(inputs.skills)
        ]
    )


SKILLS_FRAME, SKILLS_HEADING_FRAME = build_tag_frame("skills"), build_heading_frame(texts.SKILLS_INTRODUCTION)


def frame_skills_menu(body: TextChunks) -> TextChunks:
    return SKILLS_FRAME(SKILLS_HEADING_FRAME(body))


def list_opal_problems(inputs: PromptInputs) -> Sequence[str]:
    return describe_rejected_skills(inputs.skills) if inputs.skills else ()


def build_opal_environment(inputs: PromptInputs) -> TextChunks:
    directory = collapse_lines(inputs.working_directory)
    return [TextChunk(f"Working directory: {directory}")] if directory else NO_CHUNKS


def build_opal_guidelines(inputs: PromptInputs) -> TextChunks:
    """Build the guidelines, or a placeholder when none applies, because the tools of a call may need some."""
    return build_guideline_chunks(OPAL_GUIDELINES, inputs) or build_slot_placeholder("tool-guidelines")


@register_slot("opal.guidelines")
def render_opal_guidelines(slots: Slots, slot_data: Mapping[str, Any]) -> str | None:
    if slots.tools is None:
        return None if slot_data["is_built"] else ""
    return wrap_in_tag("tool-guidelines", format_guidelines(OPAL_GUIDELINES, slots.tools, slot_data["own"]))


def get_opal_guidelines_data(inputs: PromptInputs) -> Mapping[str, Any]:
    own = get_own_guidelines(inputs)
    is_built = any(own.values()) or OPAL_GUIDELINES.has_matching_rule(
        {tool.name for tool in inputs.active_tools()}
    )
    return {"own": own, "is_built": is_built}


@register_slot("opal.planning")
def render_opal_planning(slots: Slots, slot_data: Mapping[str, Any]) -> str:
    path = get_plan_path(slots, slot_data.get("home", ""))
    return wrap_in_tag("planning", texts.PLANNING_TEMPLATE.format(path=collapse_lines(path))) if path else ""


def get_plan_path(slots: Slots, home: str) -> str:
    """Return the plan's path: as given, or else in the folder of the session below the home directory.

    The home directory is that of the call, or else `home`, that of the agent, or else `~`.
    """
    session = slots.session
    if session is None or session.plan_path or not session.id:
        return session.plan_path if session else ""
    if home and not slots.host.get("home"):
        separator = "\\" if "\\" in home else "/"
        return separator.join([home.rstrip(separator), ".opal", "sessions", session.id, "plan.md"])
    folder = str(slots.host.get("home") or "~").rstrip("/")
    return f"{folder}/.opal/sessions/{session.id}/plan.md"


def get_opal_planning_data(inputs: PromptInputs) -> Mapping[str, Any] | None:
    """Return None for sub-agents: they handle delegated work and do not plan, even with a session."""
    if inputs.is_sub_agent:
        return None
    return {"home": inputs.home} if inputs.home else {}


def list_opal_displaced_inputs(inputs: PromptInputs) -> Sequence[str]:
    """List identity and instructions as displaced when a base system prompt replaces them."""
    return AGENT_TEXT_INPUTS if inputs.base is not None and inputs.base.text else ()


OPAL_LAYOUT = Layout(
    name="opal",
    summary="Six sections in XML-style tags; guidelines follow the tools, planning needs a session.",
    slots=("host", "session", "tools", "append", "replace"),
    problems=list_opal_problems,
    displaced=list_opal_displaced_inputs,
    parts=(
        LayoutPart(
            "identity",
            build_opal_identity,
            frame_default_only(build_tag_frame("identity")),
            uses=("base", *AGENT_TEXT_INPUTS),
            slot="opal.identity",
            slot_data=get_empty_slot_data,
        ),
        LayoutPart(
            "project_context",
            build_opal_project_context,
            uses=("context_files",),
            volatility=REFRESH,
            is_cuttable=True,
            shorten=cut_elements,
        ),
        LayoutPart(
            "skills",
            build_opal_skills,
            frame_skills_menu,
            uses=("skills",),
            volatility=REFRESH,
            is_cuttable=True,
            omission_reason=OmissionReason.NO_OFFERED_SKILLS,
        ),
        LayoutPart(
            "environment", build_opal_environment, build_tag_frame("environment"), uses=("working_directory",)
        ),
        LayoutPart(
            "tool_guidelines",
            build_opal_guidelines,
            frame_unless_placeholder(build_tag_frame("tool-guidelines")),
            uses=("tools",),
            slot="opal.guidelines",
            slot_data=get_opal_guidelines_data,
        ),
        LayoutPart(
            "planning",
            lambda _: build_slot_placeholder("planning"),
            volatility=SESSION,
            slot="opal.planning",
            slot_data=get_opal_planning_data,
            omission_reason=OmissionReason.SUB_AGENT,
        ),
        build_call_part("call_append", "opal.append", TURN, placeholder="call-append"),
    ),
)

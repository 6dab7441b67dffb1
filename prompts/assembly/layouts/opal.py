"""Opal: six sections in XML-style tags; guidelines follow the tools, planning needs a session."""

from collections.abc import Mapping, Sequence
from typing import Any

from prompts.assembly import sections
from prompts.assembly.budget import cut_elements
from prompts.assembly.frames import Frame, heading, tag, tagged
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.layout import Layout, Part, awaited, when_said
from prompts.assembly.sections import NOTHING_TO_SAY
from prompts.assembly.segments import OURS, REFRESH, SESSION, Piece, Pieces
from prompts.assembly.skill_rules import offered, refusals
from prompts.assembly.slots import Slots, slot
from prompts.assembly.text import on_one_line
from prompts.assembly.texts import opal as words
from prompts.assembly.tool_lines import guideline_pieces, guideline_words, own_guidelines
from prompts.assembly.tool_rules import OPAL_RULES, Guidelines

GUIDELINES = Guidelines(OPAL_RULES)
OWN_WORDS = (
    "identity.name",
    "identity.emoji",
    "identity.creature",
    "identity.vibe",
    "identity.text",
    "instructions",
)


def identity(inputs: PromptInputs) -> Pieces:
    """The system prompt that was handed in; else the agent's own words; else the default."""
    if inputs.base is not None and inputs.base.text:
        return [Piece(inputs.base.text, inputs.base.origin)]
    own = [*sections.identity(inputs), *sections.instructions(inputs)]
    return sections.listed(own, "\n\n") if own else [Piece(words.IDENTITY)]


def default_only(frame: Frame) -> Frame:
    """The frame around our own words; whoever brings their own controls the format."""
    return lambda body: frame(body) if body[0][1] is OURS else body


def project_context(inputs: PromptInputs) -> Pieces:
    """Every file in an element of its own, the root's first, so that the nearest has the last word."""
    limits = inputs.limits
    return sections.listed(
        [
            sections.element("project-context", text, sections.file_origin(file), source=file.path)
            for file, text in sections.fitted(inputs.context_files, limits.per_file, limits.all_files)
            if text and not text.isspace()
        ],
        "\n\n",
    )


def skills(inputs: PromptInputs) -> Pieces:
    """A menu; full instructions are loaded on demand, so skills that hide from the model elsewhere stay."""
    return sections.unled(
        [
            (f"\n- **{skill.name}**: {on_one_line(skill.description)}", skill.origin)
            for skill in offered(inputs.skills)
        ]
    )


MENU, INTRODUCTION = tag("skills"), heading(words.SKILLS)


def menu(body: Pieces) -> Pieces:
    return MENU(INTRODUCTION(body))


def skill_problems(inputs: PromptInputs) -> Sequence[str]:
    return refusals(inputs.skills) if inputs.skills else ()


def environment(inputs: PromptInputs) -> Pieces:
    directory = on_one_line(inputs.working_directory)
    return [Piece(f"Working directory: {directory}")] if directory else NOTHING_TO_SAY


def guidelines(inputs: PromptInputs) -> Pieces:
    """Kept open when the agent's tools call for none: those of a call may."""
    return guideline_pieces(GUIDELINES, inputs) or awaited("tool-guidelines")


@slot("opal.guidelines")
def guidelines_of_call(slots: Slots, given: Mapping[str, Any]) -> str | None:
    if slots.tools is None:
        return None if given["is_built"] else ""
    return tagged("tool-guidelines", guideline_words(GUIDELINES, slots.tools, given["own"]))


def given_to_guidelines(inputs: PromptInputs) -> Mapping[str, Any]:
    own = own_guidelines(inputs)
    is_built = any(own.values()) or GUIDELINES.speak({tool.name for tool in inputs.active_tools()})
    return {"own": own, "is_built": is_built}


@slot("opal.planning")
def planning(slots: Slots, _: Mapping[str, Any]) -> str:
    if slots.session is None or not slots.session.plan_path:
        return ""
    return tagged("planning", words.PLANNING.format(path=on_one_line(slots.session.plan_path)))


def for_top_level(inputs: PromptInputs) -> Mapping[str, Any] | None:
    """Sub-agents handle delegated work; planning is not theirs, whatever session a call names."""
    return None if inputs.is_sub_agent else {}


def displaced(inputs: PromptInputs) -> Sequence[str]:
    """A system prompt that was handed in takes the place of the agent's own words."""
    return OWN_WORDS if inputs.base is not None and inputs.base.text else ()


OPAL = Layout(
    name="opal",
    summary="Six sections in XML-style tags; guidelines follow the tools, planning needs a session.",
    slots=("session", "tools"),
    problems=skill_problems,
    displaced=displaced,
    parts=(
        Part("identity", identity, default_only(tag("identity")), uses=("base", *OWN_WORDS)),
        Part(
            "project-context",
            project_context,
            uses=("context_files",),
            volatility=REFRESH,
            is_cuttable=True,
            shorten=cut_elements,
        ),
        Part(
            "skills",
            skills,
            menu,
            uses=("skills",),
            volatility=REFRESH,
            is_cuttable=True,
            needs="no skill that may be offered",
        ),
        Part("environment", environment, tag("environment"), uses=("working_directory",)),
        Part(
            "tool-guidelines",
            guidelines,
            when_said(tag("tool-guidelines")),
            uses=("tools",),
            slot="opal.guidelines",
            given=given_to_guidelines,
        ),
        Part(
            "planning",
            lambda _: awaited("planning"),
            volatility=SESSION,
            slot="opal.planning",
            given=for_top_level,
            needs="sub-agents do not plan",
        ),
    ),
)

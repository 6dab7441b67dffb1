"""Pi: a base that SYSTEM.md replaces whole, then what is appended, context, skills, date and directory."""

from collections.abc import Mapping, Sequence
from typing import Any

from prompts.assembly import sections
from prompts.assembly.budget import cut_entries
from prompts.assembly.dates import clock_words, date_words, zone_words
from prompts.assembly.frames import heading
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.layout import Layout, Part, Section, awaited, call_part, when_said
from prompts.assembly.sections import NOTHING_TO_SAY
from prompts.assembly.segments import REFRESH, TURN, Piece, Pieces
from prompts.assembly.skill_listing import can_read, given_listing, is_invocable, listed_skills, listing
from prompts.assembly.slots import Slots, slot
from prompts.assembly.text import lines, normalised, on_one_line
from prompts.assembly.texts import pi as words
from prompts.assembly.tool_lines import (
    given_guidelines,
    given_snippets,
    guideline_pieces,
    guideline_words,
    tool_pieces,
    tool_words,
)
from prompts.assembly.tool_rules import PI_RULES, PI_STANDING, Guidelines

GUIDELINES = Guidelines(PI_RULES, PI_STANDING)
IDENTITY = ("identity.name", "identity.emoji", "identity.creature", "identity.vibe", "identity.text")
TOOLS_HEADING, GUIDELINES_HEADING, NO_TOOLS = "Available tools:", "Guidelines:", "(none)"


def is_replaced(inputs: PromptInputs) -> bool:
    """A SYSTEM.md was found; which one, project or global, discovery has settled."""
    return inputs.base is not None and bool(inputs.base.text)


def of_default_base(section: Section) -> Section:
    """A section that goes with the default base; whoever replaces the base owns all of it."""
    return lambda inputs: NOTHING_TO_SAY if is_replaced(inputs) else section(inputs)


def base(inputs: PromptInputs) -> Pieces:
    """SYSTEM.md; else the agent's own identity; else pi's sentence."""
    if inputs.base is not None and inputs.base.text:
        return [Piece(inputs.base.text, inputs.base.origin)]
    return sections.identity(inputs) or [Piece(words.IDENTITY)]


def tools(inputs: PromptInputs) -> Pieces:
    return tool_pieces(words.TOOLS, inputs) or [Piece(NO_TOOLS)]


@slot("pi.tools")
def tools_of_call(slots: Slots, given: Mapping[str, Any]) -> str | None:
    if slots.tools is None:
        return None
    return f"{TOOLS_HEADING}\n{tool_words(words.TOOLS, slots.tools, given['snippets']) or NO_TOOLS}"


def custom_tools(_: PromptInputs) -> Pieces:
    return [Piece(words.CUSTOM_TOOLS)]


def guidelines(inputs: PromptInputs) -> Pieces:
    return guideline_pieces(GUIDELINES, inputs)


@slot("pi.guidelines")
def guidelines_of_call(slots: Slots, given: Mapping[str, Any]) -> str | None:
    if slots.tools is None:
        return None
    return f"{GUIDELINES_HEADING}\n{guideline_words(GUIDELINES, slots.tools, given['own'])}"


def documentation(inputs: PromptInputs) -> Pieces:
    """Where to read about pi itself; a path that is not known leaves no line."""
    if inputs.documentation is None:
        return NOTHING_TO_SAY
    paths = (
        ("Main documentation", inputs.documentation.main),
        ("Additional docs", inputs.documentation.additional),
        ("Examples", inputs.documentation.examples),
    )
    said = lines(f"- {title}: {on_one_line(path)}" for title, path in paths if path)
    return [Piece(said)] if said else NOTHING_TO_SAY


def append(inputs: PromptInputs) -> Pieces:
    """APPEND_SYSTEM.md, then the agent's instructions: both are directives of the system's level."""
    held = [text for text in (inputs.append, inputs.instructions) if text is not None and text.text]
    return sections.listed([Piece(text.text, text.origin) for text in held], "\n\n")


def project_context(inputs: PromptInputs) -> Pieces:
    """Every file under its path, ancestors first."""
    limits = inputs.limits
    return sections.listed(
        [
            (f"## {on_one_line(file.path)}\n\n{text}", sections.file_origin(file))
            for file, text in sections.fitted(inputs.context_files, limits.per_file, limits.all_files)
            if text and not text.isspace()
        ],
        "\n\n",
    )


def date_and_directory(inputs: PromptInputs) -> Pieces:
    """The time is the call's; the directory already stands in the build."""
    directory = directory_line(inputs.working_directory)
    return [*awaited("time"), Piece(f"\n{directory}")] if directory else awaited("time")


def directory_line(directory: str) -> str:
    return f"Current working directory: {on_one_line(directory)}" if directory else ""


def given_directory(inputs: PromptInputs) -> Mapping[str, Any]:
    return {"directory": directory_line(inputs.working_directory)}


@slot("pi.date")
def date_of_call(slots: Slots, given: Mapping[str, Any]) -> str:
    now = slots.now
    if now is None:
        return str(given["directory"])
    moment = f"{date_words(now)} at {clock_words(now)} {zone_words(now, slots.zone)}".rstrip()
    return lines((f"Current date and time: {moment}", given["directory"]))


@slot("pi.replace")
def replacement(slots: Slots, _: Mapping[str, Any]) -> str:
    return normalised(slots.replace)


@slot("pi.append")
def call_append(slots: Slots, _: Mapping[str, Any]) -> str:
    return normalised(slots.append)


def displaced(inputs: PromptInputs) -> Sequence[str]:
    """What a SYSTEM.md costs, and skills that nothing can read."""
    replaced = (*IDENTITY, "tools", "documentation") if is_replaced(inputs) else ()
    is_unread = any(map(is_invocable, inputs.skills)) and not can_read(inputs)
    return (*replaced, "skills") if is_unread else replaced


REPLACED = "the base is replaced"
PI = Layout(
    name="pi",
    summary="A base that SYSTEM.md replaces whole; then appended text, context, skills, date and directory.",
    slots=("now", "timezone", "zone", "tools", "append", "replace"),
    displaced=displaced,
    parts=(
        Part("base", base, uses=("base", *IDENTITY)),
        Part(
            "tools",
            of_default_base(tools),
            heading(TOOLS_HEADING, "\n"),
            uses=("tools",),
            slot="pi.tools",
            given=given_snippets,
            needs=REPLACED,
        ),
        Part("custom-tools", of_default_base(custom_tools), needs=REPLACED),
        Part(
            "guidelines",
            of_default_base(guidelines),
            heading(GUIDELINES_HEADING, "\n"),
            uses=("tools",),
            slot="pi.guidelines",
            given=given_guidelines,
            needs=REPLACED,
        ),
        Part(
            "documentation",
            of_default_base(documentation),
            heading(words.DOCUMENTATION, "\n"),
            uses=("documentation",),
            needs="no documentation is named, or the base is replaced",
        ),
        Part("append", append, uses=("append", "instructions")),
        Part(
            "project-context",
            project_context,
            heading(words.CONTEXT),
            uses=("context_files",),
            volatility=REFRESH,
            is_cuttable=True,
        ),
        Part(
            "skills",
            listed_skills,
            when_said(listing),
            uses=("skills",),
            volatility=REFRESH,
            slot="pi.skills",
            given=given_listing,
            is_cuttable=True,
            shorten=cut_entries,
            needs="no skill that the model may call",
        ),
        Part(
            "date-and-directory",
            date_and_directory,
            uses=("working_directory",),
            volatility=TURN,
            slot="pi.date",
            given=given_directory,
        ),
        # Last but one: what it says takes the place of all before it, and what is appended still follows.
        call_part("replacement", "pi.replace", TURN),
        call_part("call-append", "pi.append", TURN),
    ),
)

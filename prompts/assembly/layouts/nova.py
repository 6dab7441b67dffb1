"""The nova layout: ten tagged sections; identity, then context, then state."""

from collections.abc import Mapping
from typing import Any

from prompts.assembly import sections
from prompts.assembly.budget import cut_entries
from prompts.assembly.dates import format_24_hour_time, format_date, get_zone_name
from prompts.assembly.frames import build_tag_frame, wrap_in_tag
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.layout import Layout, LayoutPart, build_call_part, get_timezone_slot_data
from prompts.assembly.report import OmissionReason
from prompts.assembly.sections import NO_CHUNKS
from prompts.assembly.segments import CHANNEL, SESSION, TURN, USER, Origin, TextChunk, TextChunks
from prompts.assembly.slots import Slots, register_slot
from prompts.assembly.task_text import format_task
from prompts.assembly.text import (
    collapse_lines,
    collapse_whitespace,
    escape_attributes,
    escape_closing_tags,
    indent_continuation,
)
from prompts.assembly.texts.storage import STORAGE_GUIDE

STORAGE_CHUNKS = (TextChunk(STORAGE_GUIDE),)
PERSISTENT_CAPABILITIES = frozenset({"files", "persistence"})
BACKGROUND_NOTICE = (
    "You are running in the background (scheduled task). "
    "Your responses will NOT be sent to the user automatically.\n"
    "If you need to notify the user about something important, use the notify_user tool."
)


def build_nova_instructions(inputs: PromptInputs) -> TextChunks:
    """Include instructions only if there is an identity; without one, a legacy agent's role contains them."""
    return sections.build_instructions_section(inputs) if sections.has_identity(inputs) else NO_CHUNKS


def build_responsibilities_section(inputs: PromptInputs) -> TextChunks:
    """Tag each responsibility with its title, so that the agent can name a responsibility when it is done."""
    responsibilities = inputs.responsibilities
    titles = escape_attributes([responsibility.title for responsibility in responsibilities])
    pairs = zip(titles, responsibilities, strict=True)
    return sections.strip_first_gap(
        [
            (format_responsibility(title, responsibility.text), responsibility.origin)
            for title, responsibility in pairs
        ]
    )


def format_responsibility(title: str, text: str) -> str:
    if not text:
        return f'\n  <Responsibility title="{title}">\n  </Responsibility>'
    if "<" in text or "\n" in text:
        text = indent_continuation(escape_closing_tags(text, "Responsibility"), "    ")
    return f'\n  <Responsibility title="{title}">\n    {text}\n  </Responsibility>'


def build_directories_section(inputs: PromptInputs) -> TextChunks:
    """List the directories of the agent; empty for agents without file access."""
    working, others = inputs.working_directory, inputs.directories
    paragraphs = []
    if working and (others or can_reach_files(inputs)):
        paragraphs.append(
            f"Your working directory is: {collapse_lines(working)}\n"
            "There may already be existing files — check before creating new ones."
        )
    if others:
        bullets = "\n".join([f"- {collapse_lines(path)}" for path in others])
        paragraphs.append(f"You also have access to these additional directories:\n{bullets}")
    return [("\n\n".join(paragraphs), Origin("agent", inputs.agent))] if paragraphs else NO_CHUNKS


def can_reach_files(inputs: PromptInputs) -> bool:
    """Tell whether the agent has file access; this is assumed if its capabilities are not stated."""
    return inputs.capabilities is None or "files" in inputs.capabilities


def build_storage_section(inputs: PromptInputs) -> TextChunks:
    """Include the storage guide only for agents with a stated persistent capability.

    Unlike file access, it is not assumed if the capabilities are not stated: a working directory suggests
    that the agent can reach files, but nothing suggests memory or triggers, which the guide also explains.
    """
    stated = inputs.capabilities or ()
    return NO_CHUNKS if PERSISTENT_CAPABILITIES.isdisjoint(stated) else STORAGE_CHUNKS


def list_nova_displaced_inputs(inputs: PromptInputs) -> tuple[str, ...]:
    """List instructions as displaced when there is no identity."""
    return () if sections.has_identity(inputs) else ("instructions",)


@register_slot("nova.context")
def render_nova_context(slots: Slots, _: Mapping[str, Any]) -> str:
    if slots.now is None:
        return ""
    zone = escape_closing_tags(
        collapse_whitespace(slots.timezone or get_zone_name(slots.now, slots.zone)), "Context"
    )
    time = f"{format_date(slots.now)} at {format_24_hour_time(slots.now)}"
    return wrap_in_tag("Context", f"Current time: {time} ({zone})" if zone else f"Current time: {time}")


@register_slot("nova.task")
def render_nova_task(slots: Slots, _: Mapping[str, Any]) -> str:
    return wrap_in_tag("Task", format_task(slots.task)) if slots.task else ""


@register_slot("nova.background")
def render_nova_background(slots: Slots, _: Mapping[str, Any]) -> str:
    return wrap_in_tag("Background", BACKGROUND_NOTICE) if slots.is_background else ""


NOVA_LAYOUT = Layout(
    name="nova",
    summary="Ten tagged sections; what is absent leaves no trace.",
    slots=("now", "timezone", "task", "is_background"),
    displaced=list_nova_displaced_inputs,
    parts=(
        LayoutPart(
            "identity",
            sections.build_identity_section,
            build_tag_frame("Identity"),
            uses=("identity.name", "identity.emoji", "identity.creature", "identity.vibe", "identity.text"),
            omission_reason=OmissionReason.NO_IDENTITY,
        ),
        LayoutPart(
            "instructions",
            build_nova_instructions,
            build_tag_frame("Instructions"),
            uses=("instructions",),
            omission_reason=OmissionReason.NO_INSTRUCTIONS,
        ),
        LayoutPart(
            "responsibilities",
            build_responsibilities_section,
            build_tag_frame("Responsibilities"),
            uses=("responsibilities",),
            omission_reason=OmissionReason.NO_RESPONSIBILITIES,
            shorten=cut_entries,
        ),
        LayoutPart(
            "directories",
            build_directories_section,
            build_tag_frame("Directories"),
            uses=("working_directory", "directories"),
            omission_reason=OmissionReason.NO_DIRECTORY,
        ),
        LayoutPart(
            "storage",
            build_storage_section,
            build_tag_frame("Storage"),
            uses=("capabilities",),
            omission_reason=OmissionReason.NO_STORAGE,
        ),
        LayoutPart(
            "formatting",
            sections.build_formatting_section,
            build_tag_frame("Formatting"),
            uses=("channel.formatting",),
            volatility=CHANNEL,
            omission_reason=OmissionReason.NO_FORMATTING_RULES,
        ),
        build_call_part("context", "nova.context", TURN, get_timezone_slot_data, uses=("user.timezone",)),
        LayoutPart(
            "memories",
            sections.build_memories_section,
            build_tag_frame("Memories"),
            uses=("memories",),
            volatility=USER,
            omission_reason=OmissionReason.NO_MEMORIES,
            is_cuttable=True,
            shorten=cut_entries,
        ),
        build_call_part("task", "nova.task", SESSION),
        build_call_part("background", "nova.background", TURN),
    ),
)

"""Nova: ten tagged sections, identity before context, context before state; responsibilities by title."""

from collections.abc import Mapping
from typing import Any

from prompts.assembly import sections
from prompts.assembly.budget import cut_entries
from prompts.assembly.dates import format_24_hour_time, format_date, get_zone_name
from prompts.assembly.frames import build_tag_frame, wrap_in_tag
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.layout import Layout, LayoutPart, build_call_part
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
    """Only beside an identity: agents of the old kind have their instructions inside their role."""
    return sections.build_instructions_section(inputs) if sections.has_identity(inputs) else NO_CHUNKS


def build_responsibilities_section(inputs: PromptInputs) -> TextChunks:
    """Addressable by title, so that an agent can name the one it is done with."""
    duties = inputs.responsibilities
    titles = escape_attributes([duty.title for duty in duties])
    both = zip(titles, duties, strict=True)
    return sections.strip_first_gap(
        [(format_responsibility(title, duty.text), duty.origin) for title, duty in both]
    )


def format_responsibility(title: str, text: str) -> str:
    if not text:
        return f'\n  <Responsibility title="{title}">\n  </Responsibility>'
    if "<" in text or "\n" in text:
        text = indent_continuation(escape_closing_tags(text, "Responsibility"), "    ")
    return f'\n  <Responsibility title="{title}">\n    {text}\n  </Responsibility>'


def build_directories_section(inputs: PromptInputs) -> TextChunks:
    """Where the agent can work; nothing for agents that cannot reach files."""
    working, others = inputs.working_directory, inputs.directories
    said = []
    if working and (others or can_reach_files(inputs)):
        said.append(
            f"Your working directory is: {collapse_lines(working)}\n"
            "There may already be existing files — check before creating new ones."
        )
    if others:
        listed = "\n".join([f"- {collapse_lines(path)}" for path in others])
        said.append(f"You also have access to these additional directories:\n{listed}")
    return [("\n\n".join(said), Origin("agent", inputs.agent))] if said else NO_CHUNKS


def can_reach_files(inputs: PromptInputs) -> bool:
    """Whether a working directory means anything; unstated capabilities rule nothing out."""
    return not inputs.capabilities or "files" in inputs.capabilities


def build_storage_section(inputs: PromptInputs) -> TextChunks:
    """Noise for an agent that can keep nothing."""
    return NO_CHUNKS if PERSISTENT_CAPABILITIES.isdisjoint(inputs.capabilities) else STORAGE_CHUNKS


def list_nova_displaced_inputs(inputs: PromptInputs) -> tuple[str, ...]:
    """Instructions without an identity: they have a place here, but not alone."""
    return () if sections.has_identity(inputs) else ("instructions",)


@register_slot("nova.context")
def render_nova_context(slots: Slots, _: Mapping[str, Any]) -> str:
    if slots.now is None:
        return ""
    zone = escape_closing_tags(
        collapse_whitespace(slots.timezone or get_zone_name(slots.now, slots.zone)), "Context"
    )
    words = f"{format_date(slots.now)} at {format_24_hour_time(slots.now)}"
    return wrap_in_tag("Context", f"Current time: {words} ({zone})" if zone else f"Current time: {words}")


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
            needs="no identity",
        ),
        LayoutPart(
            "instructions",
            build_nova_instructions,
            build_tag_frame("Instructions"),
            uses=("instructions",),
            needs="no instructions, or no identity beside them",
        ),
        LayoutPart(
            "responsibilities",
            build_responsibilities_section,
            build_tag_frame("Responsibilities"),
            uses=("responsibilities",),
            needs="no responsibilities",
            shorten=cut_entries,
        ),
        LayoutPart(
            "directories",
            build_directories_section,
            build_tag_frame("Directories"),
            uses=("working_directory", "directories"),
            needs="no directory that the agent can reach",
        ),
        LayoutPart(
            "storage",
            build_storage_section,
            build_tag_frame("Storage"),
            uses=("capabilities",),
            needs="nothing the agent can do keeps anything",
        ),
        LayoutPart(
            "formatting",
            sections.build_formatting_section,
            build_tag_frame("Formatting"),
            uses=("channel.formatting",),
            volatility=CHANNEL,
            needs="the channel has no formatting rules",
        ),
        build_call_part("context", "nova.context", TURN),
        LayoutPart(
            "memories",
            sections.build_memories_section,
            build_tag_frame("Memories"),
            uses=("memories",),
            volatility=USER,
            needs="no memories",
            is_cuttable=True,
            shorten=cut_entries,
        ),
        build_call_part("task", "nova.task", SESSION),
        build_call_part("background", "nova.background", TURN),
    ),
)

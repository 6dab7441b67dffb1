"""Nova: ten tagged sections, identity before context, context before state; responsibilities by title."""

from collections.abc import Mapping
from typing import Any

from prompts.assembly import sections
from prompts.assembly.budget import cut_entries
from prompts.assembly.dates import date_words, hour_words, zone_words
from prompts.assembly.frames import tag, tagged
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.layout import Layout, Part, call_part
from prompts.assembly.sections import NOTHING_TO_SAY
from prompts.assembly.segments import CHANNEL, SESSION, TURN, USER, Origin, Piece, Pieces
from prompts.assembly.slots import Slots, slot
from prompts.assembly.task_text import task_words
from prompts.assembly.text import attributes, guarded, indented, on_one_line, single_line
from prompts.assembly.texts.storage import STORAGE

KEEPING = (Piece(STORAGE),)
PERSISTENT = frozenset({"files", "persistence"})
BACKGROUND = (
    "You are running in the background (scheduled task). "
    "Your responses will NOT be sent to the user automatically.\n"
    "If you need to notify the user about something important, use the notify_user tool."
)


def instructions(inputs: PromptInputs) -> Pieces:
    """Only beside an identity: agents of the old kind have their instructions inside their role."""
    return sections.instructions(inputs) if sections.has_identity(inputs) else NOTHING_TO_SAY


def responsibilities(inputs: PromptInputs) -> Pieces:
    """Addressable by title, so that an agent can name the one it is done with."""
    duties = inputs.responsibilities
    titles = attributes([duty.title for duty in duties])
    both = zip(titles, duties, strict=True)
    return sections.unled([(responsibility(title, duty.text), duty.origin) for title, duty in both])


def responsibility(title: str, text: str) -> str:
    if not text:
        return f'\n  <Responsibility title="{title}">\n  </Responsibility>'
    if "<" in text or "\n" in text:
        text = indented(guarded(text, "Responsibility"), "    ")
    return f'\n  <Responsibility title="{title}">\n    {text}\n  </Responsibility>'


def directories(inputs: PromptInputs) -> Pieces:
    """Where the agent can work; nothing for agents that cannot reach files."""
    working, others = inputs.working_directory, inputs.directories
    said = []
    if working and (others or reaches_files(inputs)):
        said.append(
            f"Your working directory is: {on_one_line(working)}\n"
            "There may already be existing files — check before creating new ones."
        )
    if others:
        listed = "\n".join([f"- {on_one_line(path)}" for path in others])
        said.append(f"You also have access to these additional directories:\n{listed}")
    return [("\n\n".join(said), Origin("agent", inputs.agent))] if said else NOTHING_TO_SAY


def reaches_files(inputs: PromptInputs) -> bool:
    """Whether a working directory means anything; unstated capabilities rule nothing out."""
    return not inputs.capabilities or "files" in inputs.capabilities


def storage(inputs: PromptInputs) -> Pieces:
    """Noise for an agent that can keep nothing."""
    return NOTHING_TO_SAY if PERSISTENT.isdisjoint(inputs.capabilities) else KEEPING


def left_out(inputs: PromptInputs) -> tuple[str, ...]:
    """Instructions without an identity: they have a place here, but not alone."""
    return () if sections.has_identity(inputs) else ("instructions",)


@slot("nova.context")
def context(slots: Slots, _: Mapping[str, Any]) -> str:
    if slots.now is None:
        return ""
    zone = guarded(single_line(slots.timezone or zone_words(slots.now, slots.zone)), "Context")
    words = f"{date_words(slots.now)} at {hour_words(slots.now)}"
    return tagged("Context", f"Current time: {words} ({zone})" if zone else f"Current time: {words}")


@slot("nova.task")
def task(slots: Slots, _: Mapping[str, Any]) -> str:
    return tagged("Task", task_words(slots.task)) if slots.task else ""


@slot("nova.background")
def background(slots: Slots, _: Mapping[str, Any]) -> str:
    return tagged("Background", BACKGROUND) if slots.is_background else ""


NOVA = Layout(
    name="nova",
    summary="Ten tagged sections; what is absent leaves no trace.",
    slots=("now", "timezone", "task", "is_background"),
    displaced=left_out,
    parts=(
        Part(
            "identity",
            sections.identity,
            tag("Identity"),
            uses=("identity.name", "identity.emoji", "identity.creature", "identity.vibe", "identity.text"),
            needs="no identity",
        ),
        Part(
            "instructions",
            instructions,
            tag("Instructions"),
            uses=("instructions",),
            needs="no instructions, or no identity beside them",
        ),
        Part(
            "responsibilities",
            responsibilities,
            tag("Responsibilities"),
            uses=("responsibilities",),
            needs="no responsibilities",
            shorten=cut_entries,
        ),
        Part(
            "directories",
            directories,
            tag("Directories"),
            uses=("working_directory", "directories"),
            needs="no directory that the agent can reach",
        ),
        Part(
            "storage",
            storage,
            tag("Storage"),
            uses=("capabilities",),
            needs="nothing the agent can do keeps anything",
        ),
        Part(
            "formatting",
            sections.formatting,
            tag("Formatting"),
            uses=("channel.formatting",),
            volatility=CHANNEL,
            needs="the channel has no formatting rules",
        ),
        call_part("context", "nova.context", TURN),
        Part(
            "memories",
            sections.memories,
            tag("Memories"),
            uses=("memories",),
            volatility=USER,
            needs="no memories",
            is_cuttable=True,
            shorten=cut_entries,
        ),
        call_part("task", "nova.task", SESSION),
        call_part("background", "nova.background", TURN),
    ),
)

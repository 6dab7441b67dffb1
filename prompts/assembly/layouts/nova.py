"""Nova: ten tagged sections, identity before context, context before state; responsibilities by title."""

from collections.abc import Mapping
from typing import Any

from prompts.assembly import sections
from prompts.assembly.clock import date_words
from prompts.assembly.frames import tag, tagged
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.layout import Layout, Part, call_part
from prompts.assembly.pieces import CHANNEL, SESSION, TURN, USER, Piece
from prompts.assembly.sections import NOTHING_TO_SAY, Pieces
from prompts.assembly.slots import Slots, slot
from prompts.assembly.task_words import task_words
from prompts.assembly.text import attribute, guarded, indented, single_line
from prompts.assembly.words.storage import STORAGE

PERSISTENT = frozenset({"files", "persistence"})
BACKGROUND = (
    "You are running in the background (scheduled task). "
    "Your responses will NOT be sent to the user automatically.\n"
    "If you need to notify the user about something important, use the notify_user tool."
)


def instructions(inputs: PromptInputs) -> Pieces:
    """Only beside an identity: agents of the old kind have their instructions inside their role."""
    return sections.instructions(inputs) if sections.identity(inputs) else NOTHING_TO_SAY


def responsibilities(inputs: PromptInputs) -> Pieces:
    """Addressable by title, so that an agent can name the one it is done with."""
    return sections.listed(
        [
            Piece(
                f'  <Responsibility title="{attribute(duty.title)}">\n'
                f"    {indented(guarded(duty.text, 'Responsibility'), '    ')}\n"
                "  </Responsibility>",
                duty.origin,
            )
            for duty in inputs.responsibilities
        ]
    )


def directories(inputs: PromptInputs) -> Pieces:
    """Where the agent can work; nothing for agents that cannot reach files."""
    if not inputs.directories and not inputs.working_directory:
        return NOTHING_TO_SAY
    said = []
    if inputs.working_directory:
        said.append(
            f"Your working directory is: {single_line(inputs.working_directory)}\n"
            "There may already be existing files — check before creating new ones."
        )
    if inputs.directories:
        listed = "\n".join(f"- {single_line(path)}" for path in inputs.directories)
        said.append(f"You also have access to these additional directories:\n{listed}")
    return [Piece("\n\n".join(said))]


def storage(inputs: PromptInputs) -> Pieces:
    """Noise for an agent that can keep nothing."""
    return [Piece(STORAGE)] if PERSISTENT & set(inputs.capabilities) else NOTHING_TO_SAY


@slot("nova.context")
def context(slots: Slots, _: Mapping[str, Any]) -> str:
    if slots.now is None:
        return ""
    zone = slots.timezone or slots.now.tzname() or ""
    words = f"{date_words(slots.now)} at {slots.now:%H:%M}"
    return tagged("Context", f"Current time: {words} ({zone})")


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
            needs="needs an identity",
        ),
        Part("responsibilities", responsibilities, tag("Responsibilities"), uses=("responsibilities",)),
        Part("directories", directories, tag("Directories"), uses=("working_directory", "directories")),
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
        ),
        call_part("context", "nova.context", TURN),
        Part(
            "memories",
            sections.memories,
            tag("Memories"),
            uses=("memories",),
            volatility=USER,
            is_cuttable=True,
        ),
        call_part("task", "nova.task", SESSION),
        call_part("background", "nova.background", TURN),
    ),
)

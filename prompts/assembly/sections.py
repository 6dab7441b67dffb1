"""Inputs to body, one small function each; shared by the layouts that want the same words."""

from collections.abc import Sequence

from prompts.assembly.inputs import ContextFile, Identity, PromptInputs
from prompts.assembly.segments import Origin, TextChunks
from prompts.assembly.text import (
    escape_attribute,
    escape_closing_tags,
    format_cut_notice,
    indent_continuation,
)

NO_CHUNKS: TextChunks = ()


def format_identity_sentences(identity: Identity) -> str:
    """The one-line templates; an emoji without a name gives no sentence."""
    name = f"{identity.name} {identity.emoji}".strip() if identity.name else ""
    said = (
        f"Your name is {name}." if name else "",
        f"You are a {identity.creature}." if identity.creature else "",
        f"Your vibe: {identity.vibe}." if identity.vibe else "",
    )
    return " ".join([sentence for sentence in said if sentence])


def build_identity_section(inputs: PromptInputs) -> TextChunks:
    """Who the agent is: the sentences its fields make, then its free text."""
    if inputs.identity is None:
        return NO_CHUNKS
    said = format_identity_sentences(inputs.identity)
    text = inputs.identity.text
    whole = f"{said}\n\n{text}" if said and text else said or text
    return [(whole, inputs.identity.origin)] if whole else NO_CHUNKS


def has_identity(inputs: PromptInputs) -> bool:
    """Whether there is anything to say of who the agent is."""
    held = inputs.identity
    return held is not None and bool(held.text or format_identity_sentences(held))


def build_instructions_section(inputs: PromptInputs) -> TextChunks:
    if inputs.instructions is None or not inputs.instructions.text:
        return NO_CHUNKS
    return [(inputs.instructions.text, inputs.instructions.origin)]


def build_memories_section(inputs: PromptInputs) -> TextChunks:
    """One bullet each, in the order given."""
    return strip_first_gap(
        [
            # Most have one line, and the call would cost as much as the rest.
            (
                f"\n- {text}" if "\n" not in (text := memory.text) else f"\n- {indent_continuation(text)}",
                memory.origin,
            )
            for memory in inputs.memories
        ]
    )


def build_formatting_section(inputs: PromptInputs) -> TextChunks:
    """What the channel asks of the form; most channels ask for nothing."""
    if inputs.channel is None or not inputs.channel.formatting:
        return NO_CHUNKS
    return [(inputs.channel.formatting, inputs.channel.origin)]


def join_chunks(pieces: TextChunks, gap: str = "\n") -> TextChunks:
    """Pieces one under the other: each but the first begins with the gap."""
    return strip_first_gap([(gap + text, origin) for text, origin in pieces], gap)


def strip_first_gap(pieces: list[tuple[str, Origin]], gap: str = "\n") -> TextChunks:
    """Pieces that all begin with the gap, the first without it."""
    if pieces:
        text, origin = pieces[0]
        pieces[0] = text[len(gap) :], origin
    return pieces


def build_tagged_element(name: str, body: str, origin: Origin, source: str) -> tuple[str, Origin]:
    """One tagged element with its body on lines of its own; the body cannot close it."""
    return (
        f'<{name} source="{escape_attribute(source)}">\n{escape_closing_tags(body, name)}\n</{name}>',
        origin,
    )


def get_file_origin(file: ContextFile) -> Origin:
    """Where a file's words came from: its record, and always its path."""
    kind, name, revision, path = file.origin
    return file.origin if path else Origin(kind, name, revision, file.path)


def fit_files(files: Sequence[ContextFile], per_file: int, all_files: int) -> list[tuple[ContextFile, str]]:
    """Each file with as much of its text as the limits allow; what is left out is said in its place."""
    room, fitting = all_files, []
    for file in files:
        text, limit = file.text, min(per_file, room)
        size = len(text)
        if size > limit:
            text, size = f"{text[:limit]}{format_cut_notice(size - limit)}", limit
        room -= size
        fitting.append((file, text))
    return fitting

"""Section builders shared by several layouts: each turns one input into the body of a part."""

from collections.abc import Sequence

from prompts.assembly.inputs import ContextFileInput, IdentityInput, PromptInputs
from prompts.assembly.segments import Origin, TextChunks
from prompts.assembly.text import (
    escape_attribute,
    escape_closing_tags,
    format_cut_notice,
    indent_continuation,
)

NO_CHUNKS: TextChunks = ()


def format_identity_sentences(identity: IdentityInput) -> str:
    """Format the identity fields as sentences; an emoji without a name is ignored."""
    name = f"{identity.name} {identity.emoji}".strip() if identity.name else ""
    sentences = (
        f"Your name is {name}." if name else "",
        f"You are a {identity.creature}." if identity.creature else "",
        f"Your vibe: {identity.vibe}." if identity.vibe else "",
    )
    return " ".join([sentence for sentence in sentences if sentence])


def build_identity_section(inputs: PromptInputs) -> TextChunks:
    """Build the identity: sentences from its fields, then its free text."""
    if inputs.identity is None:
        return NO_CHUNKS
    sentences = format_identity_sentences(inputs.identity)
    free_text = inputs.identity.text
    text = f"{sentences}\n\n{free_text}" if sentences and free_text else sentences or free_text
    return [(text, inputs.identity.origin)] if text else NO_CHUNKS


def has_identity(inputs: PromptInputs) -> bool:
    """Tell whether the identity section would have any text."""
    identity = inputs.identity
    return identity is not None and bool(identity.text or format_identity_sentences(identity))


def build_instructions_section(inputs: PromptInputs) -> TextChunks:
    if inputs.instructions is None or not inputs.instructions.text:
        return NO_CHUNKS
    return [(inputs.instructions.text, inputs.instructions.origin)]


def build_memories_section(inputs: PromptInputs) -> TextChunks:
    """Build one bullet per memory, in the order of the inputs."""
    return strip_first_gap(
        [
            # Most memories have one line: not calling indent_continuation() for them halves the time.
            (
                f"\n- {text}" if "\n" not in (text := memory.text) else f"\n- {indent_continuation(text)}",
                memory.origin,
            )
            for memory in inputs.memories
        ]
    )


def build_formatting_section(inputs: PromptInputs) -> TextChunks:
    """Build the formatting rules of the channel; most channels have none."""
    if inputs.channel is None or not inputs.channel.formatting:
        return NO_CHUNKS
    return [(inputs.channel.formatting, inputs.channel.origin)]


def join_chunks(chunks: TextChunks, gap: str = "\n") -> TextChunks:
    """Join chunks by prefixing each but the first with the gap."""
    return strip_first_gap([(gap + text, origin) for text, origin in chunks], gap)


def strip_first_gap(chunks: list[tuple[str, Origin]], gap: str = "\n") -> TextChunks:
    """Remove the gap from the first chunk of a list in which every chunk begins with the gap."""
    if chunks:
        text, origin = chunks[0]
        chunks[0] = text[len(gap) :], origin
    return chunks


def build_tagged_element(name: str, body: str, origin: Origin, source: str) -> tuple[str, Origin]:
    """Build one tagged element with its body on separate lines; closing tags in the body are escaped."""
    return (
        f'<{name} source="{escape_attribute(source)}">\n{escape_closing_tags(body, name)}\n</{name}>',
        origin,
    )


def get_file_origin(file: ContextFileInput) -> Origin:
    """Return the origin of a file; if the origin has no path, add the path of the file."""
    kind, name, revision, path = file.origin
    return file.origin if path else Origin(kind, name, revision, file.path)


def fit_files(
    files: Sequence[ContextFileInput], per_file: int, all_files: int
) -> list[tuple[ContextFileInput, str]]:
    """Truncate each file to `per_file` characters, and all files together to `all_files` characters.

    A notice replaces the removed text.
    """
    remaining, fitting = all_files, []
    for file in files:
        text, limit = file.text, min(per_file, remaining)
        size = len(text)
        if size > limit:
            text, size = f"{text[:limit]}{format_cut_notice(size - limit)}", limit
        remaining -= size
        fitting.append((file, text))
    return fitting

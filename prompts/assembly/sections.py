"""Inputs to body, one small function each; shared by the layouts that want the same words."""

from collections.abc import Sequence

from prompts.assembly.inputs import ContextFile, Identity, PromptInputs
from prompts.assembly.segments import Origin, Pieces
from prompts.assembly.text import attribute, cut_notice, guarded, indented

NOTHING_TO_SAY: Pieces = ()


def identity_sentences(identity: Identity) -> str:
    """The one-line templates; an emoji without a name gives no sentence."""
    name = f"{identity.name} {identity.emoji}".strip() if identity.name else ""
    said = (
        f"Your name is {name}." if name else "",
        f"You are a {identity.creature}." if identity.creature else "",
        f"Your vibe: {identity.vibe}." if identity.vibe else "",
    )
    return " ".join([sentence for sentence in said if sentence])


def identity(inputs: PromptInputs) -> Pieces:
    """Who the agent is: the sentences its fields make, then its free text."""
    if inputs.identity is None:
        return NOTHING_TO_SAY
    said = identity_sentences(inputs.identity)
    text = inputs.identity.text
    whole = f"{said}\n\n{text}" if said and text else said or text
    return [(whole, inputs.identity.origin)] if whole else NOTHING_TO_SAY


def has_identity(inputs: PromptInputs) -> bool:
    """Whether there is anything to say of who the agent is."""
    held = inputs.identity
    return held is not None and bool(held.text or identity_sentences(held))


def instructions(inputs: PromptInputs) -> Pieces:
    if inputs.instructions is None or not inputs.instructions.text:
        return NOTHING_TO_SAY
    return [(inputs.instructions.text, inputs.instructions.origin)]


def memories(inputs: PromptInputs) -> Pieces:
    """One bullet each, in the order given."""
    return unled(
        [
            # Most have one line, and the call would cost as much as the rest.
            (f"\n- {text}" if "\n" not in (text := memory.text) else f"\n- {indented(text)}", memory.origin)
            for memory in inputs.memories
        ]
    )


def formatting(inputs: PromptInputs) -> Pieces:
    """What the channel asks of the form; most channels ask for nothing."""
    if inputs.channel is None or not inputs.channel.formatting:
        return NOTHING_TO_SAY
    return [(inputs.channel.formatting, inputs.channel.origin)]


def listed(pieces: Pieces, gap: str = "\n") -> Pieces:
    """Pieces one under the other: each but the first begins with the gap."""
    return unled([(gap + text, origin) for text, origin in pieces], gap)


def unled(pieces: list[tuple[str, Origin]], gap: str = "\n") -> Pieces:
    """Pieces that all begin with the gap, the first without it."""
    if pieces:
        text, origin = pieces[0]
        pieces[0] = text[len(gap) :], origin
    return pieces


def element(name: str, body: str, origin: Origin, source: str) -> tuple[str, Origin]:
    """One tagged element with its body on lines of its own; the body cannot close it."""
    return f'<{name} source="{attribute(source)}">\n{guarded(body, name)}\n</{name}>', origin


def file_origin(file: ContextFile) -> Origin:
    """Where a file's words came from: its record, and always its path."""
    kind, name, revision, path = file.origin
    return file.origin if path else Origin(kind, name, revision, file.path)


def fitted(files: Sequence[ContextFile], per_file: int, all_files: int) -> list[tuple[ContextFile, str]]:
    """Each file with as much of its text as the limits allow; what is left out is said in its place."""
    room, fitting = all_files, []
    for file in files:
        text, limit = file.text, min(per_file, room)
        size = len(text)
        if size > limit:
            text, size = f"{text[:limit]}{cut_notice(size - limit)}", limit
        room -= size
        fitting.append((file, text))
    return fitting

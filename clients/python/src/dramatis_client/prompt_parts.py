"""The parts of a prompt: segments, blocks and messages."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Segment:
    """One section's range in the text, in characters; `slot` names the slot that the call filled, if any."""

    section: str
    volatility: str
    start: int
    end: int
    slot: str | None
    is_cacheable: bool


@dataclass(frozen=True)
class Block:
    """A piece of the text for a provider's prompt cache; the text up to its end has this volatility."""

    text: str
    volatility: str
    # Nothing up to its end changes with a session or a turn.
    is_cacheable: bool


@dataclass(frozen=True)
class Message:
    """A message to send together with the prompt."""

    role: str
    content: str

"""A prompt as a program uses it, read from the server's JSON and checked against its digest."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from itertools import pairwise
from typing import Any

from dramatis_client.problems import Unreachable


@dataclass(frozen=True)
class Segment:
    """One section's place in the text, in characters; `slot` names what the call filled, if anything."""

    section: str
    volatility: str
    start: int
    end: int
    slot: str | None
    is_cacheable: bool


@dataclass(frozen=True)
class CacheBoundary:
    """A place in the text, in characters, for a provider's cache: all before it changes less often."""

    offset: int
    volatility: str


@dataclass(frozen=True)
class Message:
    """A message to be sent beside the prompt."""

    role: str
    text: str


@dataclass(frozen=True)
class Prompt:
    """Words for one agent on one channel, and what is known of them.

    Time and other facts of the call stand in the text as they were at `fetched_at`.
    """

    agent: str
    channel: str
    label: str
    text: str
    version: int
    # Of the version, and of the bytes of the text as they were handed out.
    digest: str
    served_digest: str
    layout: str
    segments: tuple[Segment, ...]
    cache_boundaries: tuple[CacheBoundary, ...]
    # Definitions for a provider's interface.
    tools: tuple[Mapping[str, Any], ...]
    messages: tuple[Message, ...]
    slots: Mapping[str, Any]
    tokens: int
    warnings: tuple[str, ...]
    # The record of the call that brought these words.
    ledger_id: int
    etag: str
    fetched_at: datetime
    # Not confirmed by the server lately: it is being asked, or it is away.
    is_stale: bool = False

    @property
    def blocks(self) -> tuple[str, ...]:
        """The text cut at its cache boundaries, for providers that take a prompt in blocks."""
        inner = [one.offset for one in self.cache_boundaries if 0 < one.offset < len(self.text)]
        cuts = [0, *inner, len(self.text)]
        return tuple([self.text[start:end] for start, end in pairwise(cuts) if end > start])

    @property
    def has_slots(self) -> bool:
        """Whether some of the words were true at the time of the call only."""
        return any(segment.slot for segment in self.segments)


def read_prompt(content: bytes, etag: str, fetched_at: datetime) -> Prompt:
    """Raises Unreachable where this is no prompt, or not the one that was sent."""
    try:
        said = json.loads(content)
        prompt = _prompt(said, etag, fetched_at)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unreachable("The answer is not a prompt.") from error
    if sha256(prompt.text.encode()).hexdigest() != prompt.served_digest:
        raise Unreachable("The prompt was changed on its way: its digest does not fit.")
    return prompt


def _prompt(said: Mapping[str, Any], etag: str, fetched_at: datetime) -> Prompt:
    version = said["version"]
    return Prompt(
        agent=_text(said["agent"]),
        channel=_text(said["channel"]),
        label=_text(said["label"]),
        text=_text(said["text"]),
        version=int(version["number"]),
        digest=_text(version["digest"]),
        served_digest=_text(said["served_digest"]),
        layout=_text(version["layout"]),
        segments=tuple([_segment(one) for one in said["segments"]]),
        cache_boundaries=tuple(
            [CacheBoundary(int(one["offset"]), _text(one["volatility"])) for one in said["cache_boundaries"]]
        ),
        tools=tuple(said.get("tools") or ()),
        messages=tuple(
            [Message(_text(one["role"]), _text(one["text"])) for one in said.get("messages") or ()]
        ),
        slots=said.get("slots") or {},
        tokens=int(said["tokens"]["total"]),
        warnings=tuple([_text(one) for one in said.get("warnings") or ()]),
        ledger_id=int(said["ledger_id"]),
        etag=etag or f'W/"{version["digest"]}"',
        fetched_at=fetched_at,
    )


def _segment(said: Mapping[str, Any]) -> Segment:
    start, end = said["range"]
    return Segment(
        section=_text(said["section"]),
        volatility=_text(said["volatility"]),
        start=int(start),
        end=int(end),
        slot=said.get("slot"),
        is_cacheable=bool(said.get("cacheable")),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("This is no text.")
    return value

"""Prompt data classes, parsed from the server's JSON and checked against the digest."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from itertools import accumulate, pairwise
from typing import Any

from dramatis_client.problems import Unreachable


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
class CacheBoundary:
    """An offset in the text, in characters, for a provider's prompt cache; text before it is more stable."""

    offset: int
    volatility: str


@dataclass(frozen=True)
class Message:
    """A message to send together with the prompt."""

    role: str
    text: str


@dataclass(frozen=True)
class Prompt:
    """The prompt text of one agent on one channel, with its metadata.

    The time and other slot values in the text are those of `fetched_at`.
    """

    agent: str
    channel: str
    label: str
    text: str
    version: int
    # Digests of the version, and of the served text.
    digest: str
    served_digest: str
    layout: str
    segments: tuple[Segment, ...]
    cache_boundaries: tuple[CacheBoundary, ...]
    # Tool definitions in the format of a provider's API.
    tools: tuple[Mapping[str, Any], ...]
    messages: tuple[Message, ...]
    slots: Mapping[str, Any]
    tokens: int
    warnings: tuple[str, ...]
    # The ledger row of the request that fetched this text.
    ledger_id: int
    etag: str
    fetched_at: datetime
    # Older than max-age: a refresh is running, or the server is unavailable.
    is_stale: bool = False
    # The text is the caller's `fallback`: there was no copy, and the server was unavailable.
    is_fallback: bool = False

    @property
    def blocks(self) -> tuple[str, ...]:
        """The text split at its cache boundaries, for providers that take a prompt in blocks."""
        offsets = [item.offset for item in self.cache_boundaries if 0 < item.offset < len(self.text)]
        cuts = [0, *offsets, len(self.text)]
        return tuple([self.text[start:end] for start, end in pairwise(cuts) if end > start])

    @property
    def has_slots(self) -> bool:
        """Whether the text holds slot values, such as the time of the request."""
        return any(segment.slot for segment in self.segments)


def parse_prompt(content: bytes, etag: str, fetched_at: datetime) -> Prompt:
    """Parse a prompt; raise Unreachable if this is no prompt, or if the text does not match its digest."""
    try:
        document = json.loads(content)
        prompt = _build_prompt(document, etag, fetched_at)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unreachable("The answer is not a prompt.") from error
    if sha256(prompt.text.encode()).hexdigest() != prompt.served_digest:
        raise Unreachable("The prompt was changed on its way: its digest does not fit.")
    return prompt


def build_fallback_prompt(agent: str, channel: str, label: str, text: str, now: datetime) -> Prompt:
    """Build a prompt of the caller's own text. It has no version and no ledger row."""
    return Prompt(
        agent=agent,
        channel=channel,
        label=label,
        text=text,
        version=0,
        digest="",
        served_digest=sha256(text.encode()).hexdigest(),
        layout="",
        segments=(),
        cache_boundaries=(),
        tools=(),
        messages=(),
        slots={},
        tokens=0,
        warnings=(),
        ledger_id=0,
        etag="",
        fetched_at=now,
        is_stale=True,
        is_fallback=True,
    )


def _build_prompt(document: Mapping[str, Any], etag: str, fetched_at: datetime) -> Prompt:
    digest = _require_text(document["digest"])
    blocks = tuple([_require_text(item["text"]) for item in document["blocks"]])
    levels = [_require_text(item["volatility"]) for item in document["blocks"]]
    ends = list(accumulate(len(block) for block in blocks))
    return Prompt(
        agent=_require_text(document["agent"]),
        channel=_require_text(document["channel"]),
        label=_require_text(document["label"]),
        text=_require_text(document["text"]),
        version=int(document["version"]),
        digest=digest,
        served_digest=_require_text(document["served_digest"]),
        layout=_require_text(document["layout"]),
        segments=tuple([_build_segment(item) for item in document["segments"]]),
        cache_boundaries=tuple(
            [CacheBoundary(end, level) for end, level in zip(ends[:-1], levels[:-1], strict=True)]
        ),
        tools=tuple(document.get("tools") or ()),
        messages=tuple(
            [
                Message(_require_text(item["role"]), _require_text(item["content"]))
                for item in document.get("messages") or ()
            ]
        ),
        slots=document.get("slots") or {},
        tokens=int(document["tokens"]["total"]),
        warnings=tuple([_require_text(item) for item in document.get("warnings") or ()]),
        ledger_id=int(document["ledger_id"]),
        etag=etag or f'W/"{digest}"',
        fetched_at=fetched_at,
    )


def _build_segment(document: Mapping[str, Any]) -> Segment:
    start, end = document["range"]
    return Segment(
        section=_require_text(document["section"]),
        volatility=_require_text(document["volatility"]),
        start=int(start),
        end=int(end),
        slot=document.get("slot"),
        is_cacheable=bool(document["is_cacheable"]),
    )


def _require_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("This is no text.")
    return value

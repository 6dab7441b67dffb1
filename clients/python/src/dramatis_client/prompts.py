"""Prompt data classes, parsed from the server's JSON and checked against the digest."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from itertools import accumulate, pairwise
from typing import Any

from dramatis_client import formats
from dramatis_client.problems import Unreachable
from dramatis_client.prompt_parts import Block, Message, Segment
from dramatis_client.time_slots import apply_replacements, find_replacements, shift_offset, to_local_time


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
    # The text in pieces; joined, they are the text.
    blocks: tuple[Block, ...]
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
    def has_slots(self) -> bool:
        """Whether the text holds slot values, such as the time of the request."""
        return any(segment.slot for segment in self.segments)

    def fill(self, *, now: datetime) -> "Prompt":
        """Return the prompt with another time, as the server would render it; raise NotFillable if unsure.

        `served_digest` and `ledger_id` stay those of the text that was served.
        """
        new = to_local_time(now, str(self.slots.get("timezone") or ""))
        replacements = find_replacements(self.text, self.segments, self.slots, new)
        if not replacements:
            return self
        text = apply_replacements(self.text, replacements)
        ends = [shift_offset(end, replacements) for end in accumulate(len(one.text) for one in self.blocks)]
        values = {"now": new.now.isoformat(), "timezone": new.timezone, "zone": new.zone}
        return replace(
            self,
            text=text,
            segments=tuple(
                replace(
                    one, start=shift_offset(one.start, replacements), end=shift_offset(one.end, replacements)
                )
                for one in self.segments
            ),
            blocks=tuple(
                replace(one, text=text[start:end])
                for one, (start, end) in zip(self.blocks, pairwise([0, *ends]), strict=True)
            ),
            slots={**self.slots, **{name: value for name, value in values.items() if value}},
        )

    def to_openai(self, *, role: str = "system") -> list[dict[str, Any]]:
        """Return `messages` of OpenAI's chat completions: the text, then the messages of the prompt."""
        return formats.build_openai_messages(self.text, self.messages, role)

    def to_openai_tools(self) -> list[dict[str, Any]]:
        """Return `tools` of OpenAI's chat completions."""
        return formats.build_openai_tools(self.tools)

    def to_responses_tools(self) -> list[dict[str, Any]]:
        """Return `tools` of OpenAI's responses API."""
        return formats.build_responses_tools(self.tools)

    def to_anthropic(self, *, max_marks: int = 1) -> list[dict[str, Any]]:
        """Return `system` of Anthropic's messages API.

        One mark is at the end of the longest cacheable text; further ones are at the cacheable ends before.
        """
        return formats.build_anthropic_blocks(self.blocks, max_marks)

    def to_anthropic_tools(self) -> list[dict[str, Any]]:
        """Return `tools` of Anthropic's messages API."""
        return formats.build_anthropic_tools(self.tools)

    def to_langchain(self, *, max_marks: int = 0) -> list[Any]:
        """Return LangChain messages; with marks, the system message has Anthropic's blocks."""
        return formats.build_langchain_messages(self.text, self.blocks, self.messages, max_marks)

    def trace_metadata(self) -> dict[str, str | int | bool]:
        """Return attributes for a trace: OpenTelemetry's of generative AI, and our own. They have no text."""
        names: dict[str, str | int | bool] = {
            "gen_ai.prompt.name": f"{self.agent}.{self.channel}",
            "gen_ai.agent.name": self.agent,
            "dramatis.label": self.label,
        }
        if self.is_fallback:
            return names | {"dramatis.is_fallback": True}
        return names | {
            "gen_ai.prompt.version": str(self.version),
            "dramatis.digest": self.digest,
            "dramatis.ledger_id": self.ledger_id,
        }


def parse_prompt(content: bytes, etag: str, fetched_at: datetime) -> Prompt:
    """Parse a prompt; raise Unreachable if this is no prompt, or if the text does not match its digest."""
    try:
        document = json.loads(content)
        prompt = _build_prompt(document, etag, fetched_at)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unreachable("The response is not a prompt.") from error
    if sha256(prompt.text.encode()).hexdigest() != prompt.served_digest:
        raise Unreachable("The prompt does not match its digest. It was changed in transit.")
    if "".join([block.text for block in prompt.blocks]) != prompt.text:
        raise Unreachable("The blocks of the prompt do not match its text.")
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
        blocks=(Block(text, "release", True),),
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
        blocks=tuple(
            [
                Block(
                    _require_text(item["text"]), _require_text(item["volatility"]), bool(item["is_cacheable"])
                )
                for item in document["blocks"]
            ]
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
        raise TypeError("This is not text.")
    return value

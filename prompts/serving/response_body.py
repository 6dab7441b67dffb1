"""What a caller gets of a prompt that was handed out: JSON with all that is known, or the words alone."""

import json
from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.unplaced_inputs import list_unplaced_slots
from prompts.serving import PromptRequest, ServedPrompt

JSON_TYPE, MARKDOWN_TYPE = "application/json", "text/markdown; charset=utf-8"
HashedBody = tuple[bytes, bytes]


def render_json_body(served: ServedPrompt, wanted: PromptRequest) -> HashedBody:
    """The answer and its SHA-256; only its end is written and hashed for each call."""
    end = render_json_ending(served, wanted)
    hashed = served.sheet.hashed.copy()
    hashed.update(end)
    return served.sheet.told + end, hashed.digest()


def render_markdown_body(served: ServedPrompt, wanted: PromptRequest) -> HashedBody:
    return served.sheet.text.encode(), bytes.fromhex(served.sheet.digest)


def render_json_ending(served: ServedPrompt, wanted: PromptRequest) -> bytes:
    """The names are slugs, the slots stand as they are recorded: nothing here needs another look."""
    as_of = f'"{wanted.at.isoformat()}"' if wanted.at else "null"
    return (
        f',"agent":"{wanted.agent}","channel":"{wanted.channel}","label":"{wanted.label}","as_of":{as_of},'
        f'"slots":{served.slots_json},{render_extra_fields(served)},"ledger_id":{served.ledger_id}}}'
    ).encode()


def render_extra_fields(served: ServedPrompt) -> str:
    """What stands beside the text: definitions of tools, warnings, messages."""
    if served.is_plain:
        return render_plain_fields(served.words.tools, served.words.warnings)
    slots = served.slots
    tools, unknown = select_call_tools(served.words.tools, slots.tools)
    layout = LAYOUTS.get(served.words.layout)
    lost = list_unplaced_slots(layout, slots) if layout else ()
    unplaced = [f"The layout has no place for {name}." for name in lost]
    said = {
        "tools": tools,
        "warnings": [*served.words.warnings, *unknown, *unplaced],
        "messages": [{"role": message.role, "text": message.text} for message in slots.messages],
    }
    return json.dumps(said, ensure_ascii=False, separators=(",", ":"))[1:-1]


@lru_cache(maxsize=500)
def render_plain_fields(tools: str, warnings: Sequence[str]) -> str:
    return f'"tools":{tools or "[]"},"warnings":{json.dumps(warnings, ensure_ascii=False)},"messages":[]'


def select_call_tools(tools: str, names: Sequence[str] | None) -> tuple[list[Any], list[str]]:
    """The definitions a call asks for, in its order, and a word on names that nobody has defined."""
    definitions = json.loads(tools) if tools else []
    if names is None:
        return definitions, []
    known = {definition["name"]: definition for definition in definitions}
    asked = list(dict.fromkeys(names))
    unknown = [
        f"The call names the tool {name}, which has no definition." for name in asked if name not in known
    ]
    return [known[name] for name in asked if name in known], unknown


def format_repr_digest(hashed: bytes) -> str:
    """RFC 9530, over the bytes of the answer."""
    return f"sha-256=:{b64encode(hashed).decode()}:"

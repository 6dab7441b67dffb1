"""Render the response body of a served prompt: JSON with metadata, or the text only."""

import json
from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from prompts.assembly.text import collapse_whitespace
from prompts.serving.request import PromptRequest
from prompts.serving.services import ServedPrompt
from prompts.serving.warnings import format_lost

JSON_TYPE = "application/json"
MAX_UNKNOWN_FACTS, MAX_NAME_LENGTH = 20, 100
HashedBody = tuple[bytes, bytes]


def render_json_body(served: ServedPrompt, prompt_request: PromptRequest) -> HashedBody:
    """Return the JSON body and its SHA-256.

    Start and hash state come from the cached rendering. Only the end is rendered and hashed for each call.
    """
    end = render_json_ending(served, prompt_request)
    body_hash = served.rendered.json_hash.copy()
    body_hash.update(end)
    return served.rendered.json_start + end, body_hash.digest()


def render_text_body(served: ServedPrompt, prompt_request: PromptRequest) -> HashedBody:
    return served.rendered.text.encode(), bytes.fromhex(served.rendered.digest)


def render_json_ending(served: ServedPrompt, prompt_request: PromptRequest) -> bytes:
    """Render the members that differ from call to call.

    The values need no JSON escaping: they are slugs, numbers, or already JSON.
    """
    as_of = f'"{prompt_request.at.isoformat()}"' if prompt_request.at else "null"
    return (
        f',"agent":"{prompt_request.agent}","channel":"{prompt_request.channel}","label":"{prompt_request.label}","as_of":{as_of},'
        f'"slots":{served.slots_json},{render_extra_fields(served)},"ledger_id":{served.ledger_id}}}'
    ).encode()


def render_extra_fields(served: ServedPrompt) -> str:
    """Render the members `tools`, `warnings` and `messages`, without braces."""
    if served.is_plain:
        return render_plain_fields(served.version.tools, served.warnings)
    definitions = json.loads(served.version.tools) if served.version.tools else []
    tools, unknown = select_call_tools(definitions, served.slots.tools)
    unplaced = [*format_lost(served.unplaced), *format_unknown_facts(served.unknown)]
    members = {
        "tools": tools,
        "warnings": list(dict.fromkeys([*served.warnings, *unknown, *unplaced])),
        "messages": [{"role": message.role, "content": message.text} for message in served.messages],
    }
    return json.dumps(members, ensure_ascii=False, separators=(",", ":"))[1:-1]


def format_unknown_facts(names: Sequence[str]) -> list[str]:
    """Format a warning for each key of host and sandbox that no layout uses. A client can send many."""
    warnings = [
        f"{collapse_whitespace(name)[:MAX_NAME_LENGTH]} is not a known key: it has no effect."
        for name in names[:MAX_UNKNOWN_FACTS]
    ]
    left_out = len(names) - len(warnings)
    return [*warnings, f"{left_out} further keys are unknown."] if left_out else warnings


@lru_cache(maxsize=500)
def render_plain_fields(tools: str, warnings: Sequence[str]) -> str:
    return f'"tools":{tools or "[]"},"warnings":{json.dumps(warnings, ensure_ascii=False)},"messages":[]'


def select_call_tools(
    definitions: list[dict[str, Any]], names: Sequence[str] | None
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the definitions of the tools that the call names, and a warning for each unknown name.

    The order is that of `names`. If `names` is None, all definitions are returned.
    """
    if names is None:
        return definitions, []
    known = {definition["name"]: definition for definition in definitions}
    requested = list(dict.fromkeys(names))
    unknown = [f"The tool {name} of the call has no definition." for name in requested if name not in known]
    return [known[name] for name in requested if name in known], unknown


def format_repr_digest(body_hash: bytes) -> str:
    """Format the Repr-Digest header (RFC 9530) of the response body."""
    return f"sha-256=:{b64encode(body_hash).decode()}:"

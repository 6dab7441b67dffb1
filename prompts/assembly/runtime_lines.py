"""Where a call runs, as compact key=value lines: known keys only, in one order, one line each."""

import json
from collections.abc import Mapping
from typing import Any

from prompts.assembly.slots import Slots
from prompts.assembly.text import format_table_cell

HOST_KEYS = (
    "host",
    "os",
    "arch",
    "shell",
    "provider",
    "model",
    "session",
    "sudo_non_interactive",
    "timezone",
    "accept_language",
    "location",
)
SANDBOX_KEYS = ("enabled", "mode", "backend", "scope", "image", "workspace_mount", "network")

FLAG_TEXTS = {None: "", True: "true", False: "false"}


def format_runtime_lines(slots: Slots, timezone: str = "", location: str = "") -> list[str]:
    """The host's and the sandbox's line; what only the user's profile knows fills in for the browser."""
    host = get_host_facts(slots, timezone, location) if slots.host or slots.sandbox else {}
    said = (
        format_fact_line("Host", HOST_KEYS, host),
        format_fact_line("Sandbox(exec)", SANDBOX_KEYS, slots.sandbox),
    )
    return [each for each in said if each]


def get_host_facts(slots: Slots, timezone: str, location: str) -> dict[str, Any]:
    """What the call says of its host, completed from its session and from the user's profile."""
    known = {
        "session": slots.session.id if slots.session else "",
        "timezone": slots.timezone or timezone,
        "location": location,
    }
    return known | {key: value for key, value in slots.host.items() if value not in (None, "")}


def format_fact_line(label: str, keys: tuple[str, ...], facts: Mapping[str, Any]) -> str:
    """`Label: key=value | key=value`; unknown keys and empty values leave no trace."""
    said = [(key, format_fact(facts[key])) for key in keys if key in facts]
    pairs = " | ".join([f"{key}={value}" for key, value in said if value])
    return f"{label}: {pairs}" if pairs else ""


def format_fact(value: Any) -> str:
    """A value that can neither end its line nor begin another key."""
    if isinstance(value, str):
        return format_table_cell(value)
    if value is None or value is True or value is False:
        return FLAG_TEXTS[value]
    return format_table_cell(json.dumps(value, ensure_ascii=False, default=str))

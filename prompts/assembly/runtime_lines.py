"""Format the host and the sandbox of a call as key=value lines: only known keys, in a fixed order."""

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
    """Format a line each for host and sandbox; `timezone` and `location` are the user profile's defaults."""
    host = get_host_facts(slots, timezone, location) if slots.host or slots.sandbox else {}
    lines = (
        format_fact_line("Host", HOST_KEYS, host),
        format_fact_line("Sandbox(exec)", SANDBOX_KEYS, slots.sandbox),
    )
    return [line for line in lines if line]


def get_host_facts(slots: Slots, timezone: str, location: str) -> dict[str, Any]:
    """Return the host facts of the call, completed from its session and the user profile."""
    defaults = {
        "session": slots.session.id if slots.session else "",
        "timezone": slots.timezone or timezone,
        "location": location,
    }
    return defaults | {key: value for key, value in slots.host.items() if value not in (None, "")}


def format_fact_line(label: str, keys: tuple[str, ...], facts: Mapping[str, Any]) -> str:
    """Format `Label: key=value | key=value`; unknown keys and empty values are omitted."""
    values = [(key, format_fact(facts[key])) for key in keys if key in facts]
    pairs = " | ".join([f"{key}={value}" for key, value in values if value])
    return f"{label}: {pairs}" if pairs else ""


def format_fact(value: Any) -> str:
    """Format a value so that it can neither end its line nor start another key."""
    if isinstance(value, str):
        return format_table_cell(value)
    if value is None or value is True or value is False:
        return FLAG_TEXTS[value]
    return format_table_cell(json.dumps(value, ensure_ascii=False, default=str))

"""Format the host and the sandbox of a call as key=value lines: only known keys, in a fixed order."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from prompts.assembly.slots import Slots
from prompts.assembly.text import format_table_cell

# Known keys of `host` and `sandbox`, with the descriptions that the API and its documentation publish.
# Prompts print the facts in this order.
HOST_FACTS = {
    "host": "Text: name of the machine.",
    "os": "Text: operating system.",
    "arch": "Text: processor architecture.",
    "shell": "Text: shell that runs commands.",
    "provider": "Text: provider of the model.",
    "model": "Text: name of the model.",
    "session": "Text: key of the session. Default: `session.id` of the call.",
    "sudo_non_interactive": "True or false: whether sudo works without a password.",
    "timezone": "Text: IANA time zone. Default: that of the call, else of the user profile.",
    "accept_language": "Text: languages that the user's browser accepts.",
    "location": "Text: where the user is. Default: that of the user profile.",
}
SANDBOX_FACTS = {
    "enabled": "True or false: whether commands run in a sandbox.",
    "mode": "Text: which sessions use the sandbox, such as all.",
    "backend": "Text: what runs the sandbox, such as docker.",
    "scope": "Text: how long a sandbox is kept, such as session.",
    "image": "Text: image of the sandbox.",
    "workspace_mount": "Text: how the workspace is mounted, such as ro.",
    "network": "Text: network access, such as disabled.",
}
# Not printed itself: the opal layout derives the path of the plan from the home directory.
HOME_FACTS = {
    "home": "Text: home directory on the machine. Default: the location of the agent's home directory source."
}
HOST_KEYS, SANDBOX_KEYS = tuple(HOST_FACTS), tuple(SANDBOX_FACTS)
KNOWN_FACTS = {"host": HOST_FACTS | HOME_FACTS, "sandbox": SANDBOX_FACTS}

FLAG_TEXTS = {None: "", True: "true", False: "false"}


def drop_unknown_facts(slots: Slots) -> tuple[Slots, tuple[str, ...]]:
    """Return the slots without unknown keys of host and sandbox, and these keys, such as `host.surface`."""
    facts = {"host": slots.host, "sandbox": slots.sandbox}
    unknown = [f"{name}.{key}" for name in facts for key in facts[name] if key not in KNOWN_FACTS[name]]
    if not unknown:
        return slots, ()
    host, sandbox = (
        {key: value for key, value in facts[name].items() if key in KNOWN_FACTS[name]} for name in facts
    )
    return replace(slots, host=host, sandbox=sandbox), tuple(unknown)


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

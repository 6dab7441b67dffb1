"""Read typed values from the environment and report every bad or missing one at once."""

import os
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off"})

# Every name ever asked for: a test compares it with .env.example.
asked: set[str] = set()
# Collected, not raised, so that an operator mends the environment once and not variable by variable.
problems: list[str] = []


def _read(name: str) -> str:
    """The variable, or what is in the file that NAME_FILE names; whatever is empty counts as unset."""
    asked.add(name)
    # Compose files pass empty variables on.
    said = os.environ.get(name, "").strip()
    path = os.environ.get(f"{name}_FILE", "").strip()
    filed = _in_file(name, path) if path else ""
    if said and filed:
        problems.append(f"{name} and {name}_FILE are both set: keep one")
    return said or filed


def _in_file(name: str, path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        # The kind of trouble and no more: some errors quote what they have read.
        problems.append(f"{name}_FILE cannot be read: {getattr(error, 'strerror', None) or 'it is not text'}")
        return ""


def env_str(name: str, default: str = "") -> str:
    return _read(name) or default


def env_choice(name: str, choices: tuple[str, ...]) -> str:
    """One of the choices; the first is the default."""
    value = _read(name) or choices[0]
    if value in choices:
        return value
    problems.append(f"{name} must be one of {', '.join(choices)}, not {value!r}")
    # The last choice is the strictest: a misspelt mode must not open anything.
    return choices[-1]


def env_bool(name: str, default: bool) -> bool:
    value = _read(name).lower()
    if value in TRUE or value in FALSE:
        return value in TRUE
    if value:
        problems.append(f"{name} must be true or false, not {value!r}")
    return default


def env_int(name: str, default: int) -> int:
    value = _read(name)
    if value.isascii() and value.isdigit():
        return int(value)
    if value:
        problems.append(f"{name} must be a whole number of 0 or more, not {value!r}")
    return default


def env_list(name: str, default: tuple[str, ...] = ()) -> list[str]:
    """Comma-separated words; blanks around and between them do not count."""
    words = [word.strip() for word in _read(name).split(",")]
    return [word for word in words if word] or list(default)


def env_networks(name: str, default: tuple[str, ...] = ()) -> list[IPv4Network | IPv6Network]:
    """Addresses and networks such as 10.0.0.0/8, comma-separated."""
    found = []
    for word in env_list(name, default):
        try:
            found.append(ip_network(word))
        except ValueError:
            problems.append(f"{name} must hold networks such as 10.0.0.0/8, not {word!r}")
    return found


def env_secret(name: str, *, needed: bool, default: str = "") -> str:
    """A value that production must bring itself; its content never enters a message."""
    value = _read(name)
    if needed and not value:
        problems.append(f"{name} is not set")
    return value or default


def refuse_problems() -> None:
    """Stop the start, naming everything that is wrong."""
    if problems:
        # Some variables are read twice; their trouble is told once.
        told = "; ".join(dict.fromkeys(problems))
        raise ImproperlyConfigured(f"The environment is not complete: {told}.")

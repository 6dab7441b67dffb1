"""Read typed values from the environment and report every bad or missing one at once."""

import os
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

TRUE_VALUES = frozenset({"1", "true", "yes", "on"})
FALSE_VALUES = frozenset({"0", "false", "no", "off"})

# Every name ever asked for: a test compares it with .env.example.
requested_names: set[str] = set()
# Collected, not raised, so that an operator mends the environment once and not variable by variable.
environment_problems: list[str] = []


def _read_variable(name: str) -> str:
    """The variable, or what is in the file that NAME_FILE names; whatever is empty counts as unset."""
    requested_names.add(name)
    # Compose files pass empty variables on.
    said = os.environ.get(name, "").strip()
    path = os.environ.get(f"{name}_FILE", "").strip()
    filed = _read_file(name, path) if path else ""
    if said and filed:
        environment_problems.append(f"{name} and {name}_FILE are both set: keep one")
    return said or filed


def _read_file(name: str, path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        # The kind of trouble and no more: some errors quote what they have read.
        environment_problems.append(
            f"{name}_FILE cannot be read: {getattr(error, 'strerror', None) or 'it is not text'}"
        )
        return ""


def env_str(name: str, default: str = "") -> str:
    return _read_variable(name) or default


def env_choice(name: str, choices: tuple[str, ...]) -> str:
    """One of the choices; the first is the default."""
    value = _read_variable(name) or choices[0]
    if value in choices:
        return value
    environment_problems.append(f"{name} must be one of {', '.join(choices)}, not {value!r}")
    # The last choice is the strictest: a misspelt mode must not open anything.
    return choices[-1]


def env_bool(name: str, default: bool) -> bool:
    value = _read_variable(name).lower()
    if value in TRUE_VALUES or value in FALSE_VALUES:
        return value in TRUE_VALUES
    if value:
        environment_problems.append(f"{name} must be true or false, not {value!r}")
    return default


def env_int(name: str, default: int) -> int:
    value = _read_variable(name)
    if value.isascii() and value.isdigit():
        return int(value)
    if value:
        environment_problems.append(f"{name} must be a whole number of 0 or more, not {value!r}")
    return default


def env_list(name: str, default: tuple[str, ...] = ()) -> list[str]:
    """Comma-separated words; blanks around and between them do not count."""
    words = [word.strip() for word in _read_variable(name).split(",")]
    return [word for word in words if word] or list(default)


def env_networks(name: str, default: tuple[str, ...] = ()) -> list[IPv4Network | IPv6Network]:
    """Addresses and networks such as 10.0.0.0/8, comma-separated."""
    found = []
    for word in env_list(name, default):
        try:
            found.append(ip_network(word))
        except ValueError:
            environment_problems.append(f"{name} must hold networks such as 10.0.0.0/8, not {word!r}")
    return found


def env_secret(name: str, *, needed: bool, default: str = "") -> str:
    """A value that production must bring itself; its content never enters a message."""
    value = _read_variable(name)
    if needed and not value:
        environment_problems.append(f"{name} is not set")
    return value or default


def check_environment() -> None:
    """Stop the start, naming everything that is wrong."""
    if environment_problems:
        # Some variables are read twice; their trouble is told once.
        told = "; ".join(dict.fromkeys(environment_problems))
        raise ImproperlyConfigured(f"The environment is not complete: {told}.")

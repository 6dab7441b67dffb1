"""Read typed values from the environment and report every bad or missing one at once."""

import os
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

TRUE_VALUES = frozenset({"1", "true", "yes", "on"})
FALSE_VALUES = frozenset({"0", "false", "no", "off"})

# Names of all variables that were read; a test compares them with .env.example.
requested_names: set[str] = set()
# Collected and raised together by check_environment, so that an operator can fix all variables at once.
environment_problems: list[str] = []


def _read_variable(name: str) -> str:
    """Return the value of the variable or the content of the file that NAME_FILE names.

    An empty variable counts as unset, because Compose files pass empty variables on.
    """
    requested_names.add(name)
    value = os.environ.get(name, "").strip()
    path = os.environ.get(f"{name}_FILE", "").strip()
    file_value = _read_file(name, path) if path else ""
    if value and file_value:
        environment_problems.append(f"{name} and {name}_FILE are both set: keep one")
    return value or file_value


def _read_file(name: str, path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        # Only strerror: some error messages quote the content of the file.
        environment_problems.append(
            f"{name}_FILE cannot be read: {getattr(error, 'strerror', None) or 'it is not text'}"
        )
        return ""


def env_str(name: str, default: str = "") -> str:
    return _read_variable(name) or default


def env_choice(name: str, choices: tuple[str, ...]) -> str:
    """Return one of the choices; the first is the default."""
    value = _read_variable(name) or choices[0]
    if value in choices:
        return value
    environment_problems.append(f"{name} must be one of {', '.join(choices)}, not {value!r}")
    # The last choice is the strictest: a misspelt mode must not disable any protection.
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
    """Return comma-separated values without surrounding spaces and without empty ones."""
    values = [value.strip() for value in _read_variable(name).split(",")]
    return [value for value in values if value] or list(default)


def env_networks(name: str, default: tuple[str, ...] = ()) -> list[IPv4Network | IPv6Network]:
    """Return comma-separated addresses and networks such as 10.0.0.0/8."""
    networks = []
    for value in env_list(name, default):
        try:
            networks.append(ip_network(value))
        except ValueError:
            environment_problems.append(f"{name} must hold networks such as 10.0.0.0/8, not {value!r}")
    return networks


def env_secret(name: str, *, needed: bool, default: str = "") -> str:
    """Return a value that has no default in production; it never appears in a message."""
    value = _read_variable(name)
    if needed and not value:
        environment_problems.append(f"{name} is not set")
    return value or default


def check_environment() -> None:
    """Raise ImproperlyConfigured with all problems of the environment."""
    if environment_problems:
        # Without duplicates: some variables are read twice.
        problems = "; ".join(dict.fromkeys(environment_problems))
        raise ImproperlyConfigured(f"The environment is not complete: {problems}.")

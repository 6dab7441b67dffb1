"""Read typed values from environment variables, and report all invalid and missing variables at once."""

import os
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

TRUE_VALUES = frozenset({"1", "true", "yes", "on"})
FALSE_VALUES = frozenset({"0", "false", "no", "off"})

# Names of all variables that were read; a test compares them with .env.example.
requested_names: set[str] = set()
# Problems of all variables. check_environment raises them together, so that an operator can fix them at once.
environment_problems: list[str] = []


def _read_variable(name: str) -> str:
    """Return the value of a variable, or the content of the file whose path is in the variable NAME_FILE.

    An empty variable counts as unset, because Compose passes unset variables on as empty ones.
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
        # Report strerror only, because the full message of some errors quotes the content of the file.
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
    """Return the comma-separated values, stripped of spaces and without empty values."""
    values = [value.strip() for value in _read_variable(name).split(",")]
    return [value for value in values if value] or list(default)


def env_networks(name: str, default: tuple[str, ...] = ()) -> list[IPv4Network | IPv6Network]:
    """Return the comma-separated IP addresses and networks, such as 10.0.0.0/8."""
    networks = []
    for value in env_list(name, default):
        try:
            networks.append(ip_network(value))
        except ValueError:
            environment_problems.append(f"{name} must contain networks such as 10.0.0.0/8, not {value!r}")
    return networks


def env_secret(name: str, *, needed: bool, default: str = "") -> str:
    """Return a value that must not appear in a message. If `needed`, it is a problem if it is not set."""
    value = _read_variable(name)
    if needed and not value:
        environment_problems.append(f"{name} is not set")
    return value or default


def check_environment() -> None:
    """Raise ImproperlyConfigured with all problems of the environment."""
    if environment_problems:
        # Without duplicates: some variables are read twice.
        problems = "; ".join(dict.fromkeys(environment_problems))
        raise ImproperlyConfigured(f"The environment variables are not valid: {problems}.")

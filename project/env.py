"""Read typed values from the environment and report every bad or missing one at once."""

import os

from django.core.exceptions import ImproperlyConfigured

TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off"})

# Every name ever asked for: a test compares it with .env.example.
asked: set[str] = set()
# Collected, not raised, so that an operator mends the environment once and not variable by variable.
problems: list[str] = []


def _read(name: str) -> str:
    """An empty variable counts as unset, as compose files pass those on."""
    asked.add(name)
    return os.environ.get(name, "").strip()


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


def env_secret(name: str, *, needed: bool, default: str = "") -> str:
    """A value that production must bring itself; its content never enters a message."""
    value = _read(name)
    if needed and not value:
        problems.append(f"{name} is not set")
    return value or default


def refuse_problems() -> None:
    """Stop the start, naming everything that is wrong."""
    if problems:
        raise ImproperlyConfigured("The environment is not complete: " + "; ".join(problems) + ".")

"""What a key may be used for: verb × agent × channel × label; an absent list means all."""

from collections.abc import Mapping
from typing import Any

# Take a prompt; take one filled with the facts of a call; look at records; change records.
FETCH, RENDER, READ, WRITE = "fetch", "render", "read", "write"
VERBS = (FETCH, RENDER, READ, WRITE)
DIMENSIONS = ("verbs", "agents", "channels", "labels")
MOST = 200


class BadScopes(ValueError):
    """Scopes that say nothing, or nothing sensible; the message is for people."""


def allows(scopes: Mapping[str, Any], verb: str, agent: str = "", channel: str = "", label: str = "") -> bool:
    """Whether a key with these scopes may do this; what the call does not touch is not asked about."""
    asked = zip(DIMENSIONS, (verb, agent, channel, label), strict=True)
    return all(not word or name not in scopes or word in scopes[name] for name, word in asked)


def settled_scopes(scopes: object) -> dict[str, list[str]]:
    """The scopes in one order and without repeats."""
    if not isinstance(scopes, Mapping):
        raise BadScopes("Scopes are an object of lists.")
    if strange := sorted(set(map(str, scopes)) - set(DIMENSIONS)):
        raise BadScopes(f"“{strange[0]}” is not something a key can be limited to.")
    made = {name: _words(name, scopes[name]) for name in DIMENSIONS if name in scopes}
    if unknown := sorted(set(made.get("verbs", ())) - set(VERBS)):
        raise BadScopes(f"“{unknown[0]}” is not a verb. There are: {', '.join(VERBS)}.")
    return made


def _words(name: str, value: object) -> list[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(word, str) and word for word in value):
        raise BadScopes(f"“{name}” must be a list of words.")
    if not value:
        # An empty list would be a key that opens nothing, and is easily taken for one that opens all.
        raise BadScopes(f"“{name}” is empty. Leave it out to allow all.")
    if len(value) > MOST:
        raise BadScopes(f"“{name}” has more than {MOST} entries.")
    return sorted(set(value))

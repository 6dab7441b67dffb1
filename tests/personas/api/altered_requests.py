"""A call that was made up, once more with one thing in it put wrong: far cheaper than making up another."""

import random
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

# What forms, scripts and attackers send where something else was meant.
NAMES = ("0", "-1", "null", "x" * 300, "ä\u202e🙂", "<b>", "%", "2026-13-40T25:61:00Z", "9" * 30)
WORDS = ("", " ", "a\u0000b", "../../etc", *NAMES)
VALUES: tuple[Any, ...] = (*WORDS, None, True, -1, 0, 2**63, 1.5, 1e308, [], [None], {}, {"": None})
# Taken away rather than put wrong.
GONE = 0.2


def alter(case: Any, chance: random.Random) -> bool:
    """Change one place of the call; whether there was any."""
    if isinstance(case.body, dict) and case.body:
        # A copy, for parts of it may be what others say too; assigned, so that the call is judged anew.
        body = deepcopy(case.body)
        parent, name = chance.choice(list(places_in(body)))
        put_wrong(parent, name, chance, VALUES)
        case.body = body
        return True
    if names := [parameter.name for parameter in case.operation.query]:
        query = dict(case.query or {})
        put_wrong(query, chance.choice(names), chance, WORDS)
        case.query = query
        return True
    if case.path_parameters:
        name = chance.choice(sorted(case.path_parameters))
        case.path_parameters = {**case.path_parameters, name: chance.choice(NAMES)}
        return True
    return False


def places_in(value: Any) -> Iterator[tuple[Any, Any]]:
    """Whatever holds something, with the name of what it holds, at any depth."""
    if isinstance(value, dict | list):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield value, name
            yield from places_in(inner)


def put_wrong(parent: Any, name: Any, chance: random.Random, values: tuple[Any, ...]) -> None:
    if isinstance(parent, dict) and name in parent and chance.random() < GONE:
        del parent[name]
    else:
        parent[name] = chance.choice(values)

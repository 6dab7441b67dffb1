"""Mutate a generated request in one place: far cheaper than generating another."""

import random
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

# Values that forms, scripts and attackers send by mistake or on purpose.
NAMES = ("0", "-1", "null", "x" * 300, "ä\u202e🙂", "<b>", "%", "2026-13-40T25:61:00Z", "9" * 30)
WORDS = ("", " ", "a\u0000b", "../../etc", *NAMES)
VALUES: tuple[Any, ...] = (*WORDS, None, True, -1, 0, 2**63, 1.5, 1e308, [], [None], {}, {"": None})
# Probability that a value is removed instead of replaced.
GONE = 0.2


def alter_request(case: Any, chance: random.Random) -> bool:
    """Change one value of the request; return False if it has none."""
    if isinstance(case.body, dict) and case.body:
        # A copy, because parts may be shared with other cases; assigned, so that the case is validated again.
        body = deepcopy(case.body)
        parent, name = chance.choice(list(iterate_places(body)))
        replace_value(parent, name, chance, VALUES)
        case.body = body
        return True
    if names := [parameter.name for parameter in case.operation.query]:
        query = dict(case.query or {})
        replace_value(query, chance.choice(names), chance, WORDS)
        case.query = query
        return True
    if case.path_parameters:
        name = chance.choice(sorted(case.path_parameters))
        case.path_parameters = {**case.path_parameters, name: chance.choice(NAMES)}
        return True
    return False


def iterate_places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container with each of its keys or indexes, at any depth."""
    if isinstance(value, dict | list):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield value, name
            yield from iterate_places(inner)


def replace_value(parent: Any, name: Any, chance: random.Random, values: tuple[Any, ...]) -> None:
    if isinstance(parent, dict) and name in parent and chance.random() < GONE:
        del parent[name]
    else:
        parent[name] = chance.choice(values)

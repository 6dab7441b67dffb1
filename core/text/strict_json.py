"""Strict JSON parser: duplicate keys, NaN and infinities are errors. It needs no framework."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any


class StrictJsonError(ValueError):
    """The text is accepted by Python's json module, but not allowed here; the message says why."""


class DuplicateKeyError(StrictJsonError):
    """A key occurs twice in one object."""

    def __init__(self, key: str) -> None:
        super().__init__(f"The key “{key[:80]}” appears more than once in an object.")
        self.key = key


class ConstantError(StrictJsonError):
    """NaN or an infinity."""


def parse_strict_json(text: str | bytes, **hooks: Any) -> Any:
    """Parse JSON. Raise StrictJsonError for duplicate keys and NaN, json.JSONDecodeError for invalid syntax.

    `hooks` are passed to json.loads (`parse_int`, `parse_float`).
    """
    return json.loads(text, **{**STRICT_HOOKS, **hooks})


def reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise DuplicateKeyError(next(name for name, count in counts.items() if count > 1))
    return result


def reject_constant(name: str) -> Any:
    raise ConstantError(f"{name} is not valid JSON.")


STRICT_HOOKS: dict[str, Any] = {
    "object_pairs_hook": reject_duplicate_keys,
    "parse_constant": reject_constant,
}

"""Undoes the line breaks that the cast's files have only because they are 120 characters wide."""

import re
from typing import Any

# A long line followed by one that begins like the middle of a sentence, not like a point, a title or a table.
BROKEN = re.compile(r"(?<=\n)([^\n]{90,})\n *(?!\d+\. )(?=[\w`“\"'(:])")


def unfolded(value: Any) -> Any:
    """Texts with one line per paragraph or point, as people type them in a browser."""
    if isinstance(value, list):
        return [unfolded(item) for item in value]
    if isinstance(value, dict):
        return {key: unfolded(item) for key, item in value.items()}
    if not isinstance(value, str) or "\n" not in value:
        return value
    before, after = "", f"\n{value}"
    while before != after:
        before, after = after, BROKEN.sub(r"\1 ", after)
    return after.removeprefix("\n")

"""Which records and files a version holds, and what changed of that since the version before; pure."""

from collections.abc import Iterable, Mapping
from typing import Any

# Kind and id, with the revision that is held.
Part = tuple[str, int]
Held = dict[Part, int]


def held_parts(segments: Iterable[Mapping[str, Any]], offered: Iterable[str] = ()) -> Held:
    """What the stored segments came from; tools that are offered beside the text are held as well.

    Offered are the names of a lockfile: kind, id and revision as "tool:7@2".
    """
    found: Held = {}
    for row in segments:
        origin = row.get("origin", {})
        if is_key(origin.get("id", "")):
            found[origin["kind"], int(origin["id"])] = origin.get("revision", 0)
    for name in offered:
        kind, _, rest = name.partition(":")
        key, _, revision = rest.partition("@")
        if kind == "tool" and is_key(key):
            found[kind, int(key)] = int(revision)
    return found


def part_changes(before: Held, after: Held) -> dict[Part, int | None]:
    """What came or has another revision, and, with none, what is held no more."""
    changed: dict[Part, int | None] = {
        part: revision for part, revision in after.items() if before.get(part) != revision
    }
    return changed | {part: None for part in before if part not in after}


def is_key(said: str) -> bool:
    """Words of an agent's settings name it by its slug; they hold no record."""
    return said.isascii() and said.isdecimal()

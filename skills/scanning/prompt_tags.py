"""Tags that would end, or pose as, a section of our prompts; a test compares the names with the layouts."""

import re
from collections import Counter
from collections.abc import Iterator

from skills.scanning.findings import Finder, Hit
from skills.scanning.prefilter import has_look_alike
from skills.scanning.unicode_ranges import CLOSER, GAP, GREATER, LIKE_LESS

# Lower case; hyphen and underscore count as the same.
SECTIONS = (
    *("available-skills", "background", "base", "context", "data"),
    *("directories", "documentation", "environment", "formatting", "further-instructions"),
    *("identity", "instructions", "memories", "mission", "now"),
    *("planning", "planning-tools", "previous-error", "project-context", "responsibilities"),
    *("responsibility", "skill", "skills", "soul", "storage"),
    *("task", "this-call", "tool-calling", "tool-guidelines", "tools"),
    *("user", "workspace-file"),
)
# Fields of a listing whose text is escaped whole: they cannot be closed, and XML is full of their names.
FIELDS = ("description", "location", "name")

NAME = "[a-z_-]{2,24}"


def tag(less: str) -> re.Pattern[str]:
    """Tags of any name: names are compared afterwards, which is quicker than to try one after the other.

    The bracket comes first, so that the engine can skip to the next one.
    """
    opened = rf"(?<=<)(?P<opened>{NAME})(?=\s[^<>]{{0,200}}>|>)"
    # Unfinished at the end counts too: our own closing tag would finish it.
    closed = rf"{CLOSER}[{GAP}]*(?P<closed>{NAME})(?=[{GAP}/{GREATER}]|\Z)"
    return re.compile(f"{less}(?:{opened}|{closed})", re.IGNORECASE)


ASCII_TAG, ANY_TAG = tag("<"), tag(f"[<{LIKE_LESS}]")


class Named:
    """Finds the tags of some names."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = frozenset(names)
        # Letters beyond ASCII that count as one of these, such as a long s, are left to the engine.
        self.spelled = re.compile("|".join(names).replace("-", "[-_]"), re.IGNORECASE)

    def tags(self, text: str) -> Iterator[tuple[re.Match[str], str]]:
        pattern = ANY_TAG if has_look_alike(text) else ASCII_TAG
        for found in pattern.finditer(text):
            name = found[found.lastgroup or 0]
            if plain(name) in self.names or (not name.isascii() and self.spelled.fullmatch(name)):
                yield found, plain(name)


def closings(*, opened: bool) -> Finder:
    """Closing tags of our sections that the text itself has opened before, or has not."""
    sections = Named(SECTIONS)

    def find(text: str) -> Iterator[Hit]:
        depth: Counter[str] = Counter()
        for found, name in sections.tags(text):
            if found["opened"]:
                depth[name] += 1
                continue
            if (depth[name] > 0) is opened:
                yield Hit(*found.span())
            depth[name] = max(0, depth[name] - 1)

    return find


def plain(name: str) -> str:
    return name.casefold().replace("_", "-")


def fields(text: str) -> Iterator[Hit]:
    return (Hit(*found.span()) for found, _ in FIELD_TAGS.tags(text) if found["closed"])


FIELD_TAGS = Named(FIELDS)
section_closings = closings(opened=False)
section_pairs = closings(opened=True)

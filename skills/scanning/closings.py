"""Tags that would end, or pose as, a section of our prompts; a test compares the names with the layouts."""

import re
from collections import Counter
from collections.abc import Iterator

from skills.scanning.findings import Finder, Hit

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

# A model reads look-alikes of the bracket and the slash as what they look like.
LESS, GREATER, SLASH = (
    "<\\uFF1C\\uFE64\\u2039\\u27E8\\u3008",
    ">\\uFF1E\\uFE65\\u203A\\u27E9\\u3009",
    "/\\uFF0F\\u2215\\u2044",
)
# Marks and selectors that other rules let pass or merely warn of, and so could keep a tag from being seen.
GAP = "\\s\\u061C\\u200E\\u200F\\uFE0E\\uFE0F"


def named(names: tuple[str, ...]) -> str:
    return "|".join(re.escape(name).replace("\\-", "[-_]") for name in sorted(names, key=len, reverse=True))


def closing(names: tuple[str, ...]) -> str:
    # Unfinished at the end counts too: our own closing tag would finish it.
    return rf"[{GAP}]*+\\?[{GAP}]*+[{SLASH}][{GAP}]*+(?P<closed>{named(names)})(?=[{GAP}/{GREATER}]|\Z)"


def opening(names: tuple[str, ...]) -> str:
    return rf"(?<=<)(?P<opened>{named(names)})(?:\s[^<>]{{0,200}}+)?>"


# The bracket comes first, so that the engine can skip to the next one.
SECTION_TAGS = re.compile(f"[{LESS}](?:{opening(SECTIONS)}|{closing(SECTIONS)})", re.IGNORECASE)
FIELD_CLOSING = re.compile(f"[{LESS}]{closing(FIELDS)}", re.IGNORECASE)


def may_hold_tags(text: str) -> bool:
    """Most texts hold none, and a string is quicker than a pattern to say so."""
    return "<" in text or not text.isascii()


def closings(*, opened: bool) -> Finder:
    """Closing tags of our sections that the text itself has opened before, or has not."""

    def find(text: str) -> Iterator[Hit]:
        depth: Counter[str] = Counter()
        for found in SECTION_TAGS.finditer(text) if may_hold_tags(text) else ():
            name = plain(found["opened"] or found["closed"])
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
    for found in FIELD_CLOSING.finditer(text) if may_hold_tags(text) else ():
        yield Hit(*found.span())


section_closings = closings(opened=False)
section_pairs = closings(opened=True)

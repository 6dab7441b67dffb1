"""Finders for tags that would close or imitate a section of the prompt.

A test compares the names with the layouts.
"""

import re
from collections import Counter
from collections.abc import Iterator

from skills.scanning.findings import MatchFinder, RuleMatch
from skills.scanning.prefilter import has_bracket_look_alike
from skills.scanning.unicode_ranges import (
    CLOSING_SLASH_REGEX,
    GREATER_THAN_SIGNS,
    LESS_THAN_LOOK_ALIKES,
    TAG_GAP_CHARACTERS,
)

# Lower case, with hyphens for underscores.
SECTION_NAMES = (
    *("available-skills", "background", "base", "context", "data"),
    *("directories", "documentation", "environment", "formatting", "further-instructions"),
    *("identity", "instructions", "memories", "mission", "now"),
    *("planning", "planning-tools", "previous-error", "project-context", "responsibilities"),
    *("responsibility", "skill", "skills", "soul", "storage"),
    *("task", "this-call", "tool-calling", "tool-guidelines", "tools"),
    *("user", "workspace-file"),
)
# Fields of a listing. Their text is escaped, so they cannot be closed; the names are common in XML.
FIELD_NAMES = ("description", "location", "name")

TAG_NAME_REGEX = "[a-z_-]{2,24}"


def compile_tag_pattern(opening_bracket: str) -> re.Pattern[str]:
    """Compile a pattern for tags of any name. Comparing names afterwards is faster than a long alternation.

    The pattern starts with the bracket, so that the regex engine can skip to the next one.
    """
    opened = rf"(?<=<)(?P<opened>{TAG_NAME_REGEX})(?=\s[^<>]{{0,200}}>|>)"
    # An unfinished tag at the end counts too: the closing tag of the section would complete it.
    closed = (
        rf"{CLOSING_SLASH_REGEX}[{TAG_GAP_CHARACTERS}]*(?P<closed>{TAG_NAME_REGEX})"
        rf"(?=[{TAG_GAP_CHARACTERS}/{GREATER_THAN_SIGNS}]|\Z)"
    )
    return re.compile(f"{opening_bracket}(?:{opened}|{closed})", re.IGNORECASE)


ASCII_TAG_PATTERN, ANY_TAG_PATTERN = (
    compile_tag_pattern("<"),
    compile_tag_pattern(f"[<{LESS_THAN_LOOK_ALIKES}]"),
)


class TagFinder:
    """Finds tags with the given names."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = frozenset(names)
        # Non-ASCII letters that equal ASCII ones when case is ignored, such as ſ, are left to the regex
        # engine.
        self.name_pattern = re.compile("|".join(names).replace("-", "[-_]"), re.IGNORECASE)

    def find_tags(self, text: str) -> Iterator[tuple[re.Match[str], str]]:
        pattern = ANY_TAG_PATTERN if has_bracket_look_alike(text) else ASCII_TAG_PATTERN
        for match in pattern.finditer(text):
            name = match[match.lastgroup or 0]
            if normalize_tag_name(name) in self.names or (
                not name.isascii() and self.name_pattern.fullmatch(name)
            ):
                yield match, normalize_tag_name(name)


def build_closing_tag_finder(*, opened: bool) -> MatchFinder:
    """Build a finder for closing section tags that the text itself has opened (`opened`) or has not."""
    sections = TagFinder(SECTION_NAMES)

    def find(text: str) -> Iterator[RuleMatch]:
        depth: Counter[str] = Counter()
        for match, name in sections.find_tags(text):
            if match["opened"]:
                depth[name] += 1
                continue
            if (depth[name] > 0) is opened:
                yield RuleMatch(*match.span())
            depth[name] = max(0, depth[name] - 1)

    return find


def normalize_tag_name(name: str) -> str:
    return name.casefold().replace("_", "-")


def find_field_closings(text: str) -> Iterator[RuleMatch]:
    return (RuleMatch(*match.span()) for match, _ in FIELD_TAG_FINDER.find_tags(text) if match["closed"])


FIELD_TAG_FINDER = TagFinder(FIELD_NAMES)
find_section_closings = build_closing_tag_finder(opened=False)
find_section_pairs = build_closing_tag_finder(opened=True)

"""Finders for tags that would close or imitate a section of the prompt.

A test checks that the names below include all tags that the prompt layouts use.
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

# Tags of prompt sections. In lower case, and with hyphens instead of underscores.
SECTION_NAMES = (
    *("available-skills", "background", "base", "context", "data"),
    *("directories", "documentation", "environment", "formatting", "further-instructions"),
    *("identity", "instructions", "memories", "mission", "now"),
    *("planning", "planning-tools", "previous-error", "project-context", "responsibilities"),
    *("responsibility", "skill", "skills", "soul", "storage"),
    *("task", "this-call", "tool-calling", "tool-guidelines", "tools"),
    *("user", "workspace-file"),
)
# Tags of the fields in a list, for example a list of skills. The text of a field is escaped, so it cannot
# close the field. These names are also common in other XML.
FIELD_NAMES = ("description", "location", "name")

# The longest name has 20 characters. A name may contain soft hyphens, up to two after each letter.
TAG_NAME_REGEX = r"[a-z_\u00AD-]{2,72}"


def compile_tag_pattern(opening_bracket: str) -> re.Pattern[str]:
    """Compile a pattern for tags of any name. Comparing names afterwards is faster than a long alternation.

    The pattern starts with the bracket, so that the regex engine can skip to the next bracket.
    """
    opened = rf"(?<=<)(?P<opened>{TAG_NAME_REGEX})(?=\s[^<>]{{0,200}}>|>)"
    # A closing tag without ">" at the end of the text counts too: in the prompt, the text after it would
    # complete the tag.
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
        # Checks names with non-ASCII letters. The tag patterns ignore case, so they also match letters such
        # as ſ.
        self.name_pattern = re.compile("|".join(names).replace("-", "[-_]"), re.IGNORECASE)

    def find_tags(self, text: str) -> Iterator[tuple[re.Match[str], str]]:
        pattern = ANY_TAG_PATTERN if has_bracket_look_alike(text) else ASCII_TAG_PATTERN
        for match in pattern.finditer(text):
            name = match[match.lastgroup or 0].replace("\u00ad", "")
            if normalize_tag_name(name) in self.names or (
                not name.isascii() and self.name_pattern.fullmatch(name)
            ):
                yield match, normalize_tag_name(name)


def build_closing_tag_finder(*, opened: bool) -> MatchFinder:
    """Build a finder for closing section tags.

    With `opened`, it finds those whose opening tag is in the text, otherwise those without an opening tag.
    """
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

"""Finders for invisible characters. Characters that a script or an emoji needs are not reported."""

import re
from collections.abc import Callable, Iterator

from skills.scanning import unicode_ranges
from skills.scanning.findings import MatchFinder, RuleMatch
from skills.scanning.prefilter import RulePrefilter, find_hidden_characters
from skills.scanning.unicode_ranges import (
    NEVER_MATCHES_REGEX,
    compile_character_class,
    compile_run_pattern,
    expand_ranges,
)

PlacementCheck = Callable[[str, int, int], bool]

BOM, ZWSP, ZWNJ, ZWJ = "\ufeff", "\u200b", "\u200c", "\u200d"
SOFT_HYPHEN = "\u00ad"
# Soft hyphens mark where a word may be divided, and are common in copied and typeset text. One is ordinary,
# and two in a row are a typing error. More have no use, but their number could encode a hidden message.
MAX_SOFT_HYPHENS = 2
TEXT_SELECTOR, EMOJI_SELECTOR = "\ufe0e", "\ufe0f"

EMOJI_PATTERN, RIGHT_TO_LEFT_PATTERN = (
    compile_character_class(unicode_ranges.EMOJI),
    compile_character_class(unicode_ranges.RIGHT_TO_LEFT_SCRIPTS),
)
# For each invisible character, the scripts next to which it is legitimate. Invisible characters that are not
# listed are always reported, except a BOM at the start of the text.
ALLOWED_NEIGHBOURS: dict[str, re.Pattern[str]] = {
    ZWSP: compile_character_class(unicode_ranges.UNSPACED_SCRIPTS),
    ZWNJ: compile_character_class(unicode_ranges.JOINING_SCRIPTS),
    ZWJ: compile_character_class(unicode_ranges.JOINING_SCRIPTS),
    "\u034f": compile_character_class(unicode_ranges.HEBREW),
    "\u115f": compile_character_class(unicode_ranges.JAMO),
    "\u1160": compile_character_class(unicode_ranges.JAMO),
    "\u180e": compile_character_class(unicode_ranges.MONGOLIAN),
}
# Pairs of base characters and the variation selectors that may follow them. For ideographs, only the
# registered part of the selectors is allowed: a short range of selectors can encode little hidden data.
SELECTOR_BASES = (
    (unicode_ranges.EMOJI, "FE0E-FE0F"),
    (unicode_ranges.VARIANT_BASES, "FE00-FE0D"),
    (unicode_ranges.IDEOGRAPHS, "E0100-E011F"),
    (unicode_ranges.MONGOLIAN, "180B-180D 180F"),
)
# A single selector after a character that has variants, or in a keycap emoji.
VALID_SELECTOR_REGEX = "|".join(
    (
        *(
            f"(?<=[{expand_ranges(base)}][{expand_ranges(kind)}])(?![{expand_ranges(unicode_ranges.VARIATION_SELECTORS)}])"
            for base, kind in SELECTOR_BASES
        ),
        r"(?<=[0-9#*][\uFE0E\uFE0F])(?=\u20E3)",
    )
)
BLACK_FLAG = "\U0001f3f4"
# The only tag sequences that Unicode recommends (RGI): the flags of England, Scotland and Wales. Other tag
# sequences can carry a hidden message.
FLAG_TAG_SEQUENCES = frozenset(
    "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f"
    for region in ("gbeng", "gbsct", "gbwls")
)
# The largest distance in characters between a direction mark and right-to-left text. A short word of another
# script may stand between them.
MAX_BIDI_MARK_DISTANCE = 40


def build_range_prefilter(ranges: str) -> RulePrefilter:
    """Build a prefilter that checks whether the text contains any character of these ranges."""
    search = compile_character_class(ranges).search
    return lambda features: bool(search(features.hidden_characters))


def build_run_finder(
    ranges: str, is_in_place: PlacementCheck, unless: str = NEVER_MATCHES_REGEX
) -> MatchFinder:
    """Build a finder for runs of these characters.

    Not reported are runs that `is_in_place` accepts, and runs after whose first character the regex `unless`
    matches.
    """
    pattern = compile_run_pattern(ranges, unless)

    def find(text: str) -> Iterator[RuleMatch]:
        for match in pattern.finditer(text):
            if not is_in_place(text, match.start(), match.end()):
                yield RuleMatch(match.start(), match.end())

    return find


def is_never_in_place(text: str, start: int, end: int) -> bool:
    return False


def get_adjacent_characters(text: str, start: int, end: int) -> tuple[str, str]:
    """Return the characters before and after the span, empty at the ends of the text."""
    return text[start - 1 : start] if start else "", text[end : end + 1]


def is_valid_joiner(text: str, start: int, end: int) -> bool:
    """Accept one invisible character, or the same one twice, next to a letter of a script that needs it.

    A BOM at the start of the text, a joiner inside an emoji, and up to MAX_SOFT_HYPHENS soft hyphens are
    accepted too.
    """
    run, (before, after) = text[start:end], get_adjacent_characters(text, start, end)
    if run == BOM:
        return start == 0
    if run == SOFT_HYPHEN * len(run):
        return len(run) <= MAX_SOFT_HYPHENS
    if run == ZWJ and is_in_emoji(before, after):
        return True
    neighbours = ALLOWED_NEIGHBOURS.get(run[0])
    is_alone = run in (run[0], run[0] * 2)
    return bool(neighbours and is_alone and (neighbours.match(before) or neighbours.match(after)))


def is_in_emoji(before: str, after: str) -> bool:
    return bool(EMOJI_PATTERN.match(after) and (before == EMOJI_SELECTOR or EMOJI_PATTERN.match(before)))


def is_near_right_to_left(text: str, start: int, end: int) -> bool:
    """Accept one or two direction marks near right-to-left letters, but not inside an ASCII word."""
    before, after = get_adjacent_characters(text, start, end)
    is_inside_word = before.isascii() and before.isalnum() and after.isascii() and after.isalnum()
    near = text[max(0, start - MAX_BIDI_MARK_DISTANCE) : start] + text[end : end + MAX_BIDI_MARK_DISTANCE]
    return end - start <= 2 and not is_inside_word and bool(RIGHT_TO_LEFT_PATTERN.search(near))


def is_flag_sequence(text: str, start: int, end: int) -> bool:
    return text[start - 1 : start] == BLACK_FLAG and text[start:end] in FLAG_TAG_SEQUENCES


def is_stray_selector(text: str, start: int, end: int) -> bool:
    """Return whether the run is one or two text or emoji selectors that do not follow an ASCII letter.

    Such selectors are often pasted by accident.
    """
    before = text[start - 1 : start] if start else ""
    is_common = end - start <= 2 and set(text[start:end]) <= {TEXT_SELECTOR, EMOJI_SELECTOR}
    return is_common and not (before.isascii() and before.isalpha())


def is_not_stray_selector(text: str, start: int, end: int) -> bool:
    return not is_stray_selector(text, start, end)


def is_mojibake(text: str, start: int, end: int) -> bool:
    """Return whether the run looks like text that was decoded with the wrong encoding."""
    return "\xa1" <= text[start - 1 : start] <= "\u0178" and min(text[start:end]) >= "\x80"


def is_not_mojibake(text: str, start: int, end: int) -> bool:
    return not is_mojibake(text, start, end)


find_invisible_characters = build_run_finder(unicode_ranges.INVISIBLE_CHARACTERS, is_valid_joiner)
find_bidi_controls = build_run_finder(unicode_ranges.BIDI_CONTROLS, is_never_in_place)
find_bidi_marks = build_run_finder(unicode_ranges.BIDI_MARKS, is_near_right_to_left)
find_tag_characters = build_run_finder(unicode_ranges.TAG_CHARACTERS, is_flag_sequence)
find_hidden_selectors = build_run_finder(
    unicode_ranges.VARIATION_SELECTORS, is_stray_selector, VALID_SELECTOR_REGEX
)
find_stray_selectors = build_run_finder(
    unicode_ranges.VARIATION_SELECTORS, is_not_stray_selector, VALID_SELECTOR_REGEX
)
find_control_characters = build_run_finder(unicode_ranges.CONTROL_CHARACTERS, is_mojibake)
find_mojibake = build_run_finder(unicode_ranges.CONTROL_CHARACTERS, is_not_mojibake)

HIDDEN_CHARACTER_FINDERS = (
    *(find_invisible_characters, find_bidi_controls, find_bidi_marks, find_tag_characters),
    *(find_hidden_selectors, find_stray_selectors, find_control_characters, find_mojibake),
)


def mark_hidden_characters(text: str) -> str:
    """Replace each hidden character that a rule reports by a mark such as ⟦U+200B⟧.

    Hidden characters that a script or an emoji needs stay.
    """
    if not find_hidden_characters(text):
        return text
    parts, position = [], 0
    for start, end, _ in sorted(match for find in HIDDEN_CHARACTER_FINDERS for match in find(text)):
        parts += [text[position:start], *(f"⟦U+{ord(character):04X}⟧" for character in text[start:end])]
        position = end
    return "".join([*parts, text[position:]])

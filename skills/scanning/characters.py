"""Finders for characters nobody sees, each spared where its script or an emoji needs it."""

import re
from collections.abc import Callable, Iterator

from skills.scanning import unicode_ranges
from skills.scanning.findings import Finder, Hit
from skills.scanning.prefilter import Gate, hidden_characters
from skills.scanning.unicode_ranges import NOTHING, inside, one_of, runs_of

InPlace = Callable[[str, int, int], bool]

BOM, ZWSP, ZWNJ, ZWJ = "\ufeff", "\u200b", "\u200c", "\u200d"
TEXT_STYLE, EMOJI_STYLE = "\ufe0e", "\ufe0f"

EMOJI, RIGHT_TO_LEFT = one_of(unicode_ranges.EMOJI), one_of(unicode_ranges.RIGHT_TO_LEFT)
# The company that makes a character honest; any other invisible one never is.
AT_HOME: dict[str, re.Pattern[str]] = {
    ZWSP: one_of(unicode_ranges.UNSPACED),
    ZWNJ: one_of(unicode_ranges.JOINING),
    ZWJ: one_of(unicode_ranges.JOINING),
    "\u034f": one_of(unicode_ranges.HEBREW),
    "\u115f": one_of(unicode_ranges.JAMO),
    "\u1160": one_of(unicode_ranges.JAMO),
    "\u180e": one_of(unicode_ranges.MONGOLIAN),
}
# What a selector may stand behind. Registered ideograph variants end far below the last selector, and a short
# list leaves little to hide in.
SELECTED = (
    (unicode_ranges.EMOJI, "FE0E-FE0F"),
    (unicode_ranges.STYLED, "FE00-FE0D"),
    (unicode_ranges.IDEOGRAPHS, "E0100-E011F"),
    (unicode_ranges.MONGOLIAN, "180B-180D 180F"),
)
# A lone selector behind something that has variants, or in a keycap.
SELECTING = "|".join(
    (
        *(
            f"(?<=[{inside(base)}][{inside(kind)}])(?![{inside(unicode_ranges.VARIATION_SELECTORS)}])"
            for base, kind in SELECTED
        ),
        r"(?<=[0-9#*][\uFE0E\uFE0F])(?=\u20E3)",
    )
)
BLACK_FLAG = "\U0001f3f4"
# The only flags Unicode recommends; any other word in tags would be a message.
FLAGS = frozenset(
    "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f"
    for region in ("gbeng", "gbsct", "gbwls")
)
# As far as a mark may be from the letters it serves: past a short foreign word.
NEAR = 40


def any_of(ranges: str) -> Gate:
    """Whether the text holds any of these at all; few do."""
    search = one_of(ranges).search
    return lambda look: bool(search(look.hidden))


def runs(ranges: str, is_in_place: InPlace, unless: str = NOTHING) -> Finder:
    """A finder for runs of some characters, but for those that are where they belong."""
    pattern = runs_of(ranges, unless)

    def find(text: str) -> Iterator[Hit]:
        for found in pattern.finditer(text):
            if not is_in_place(text, found.start(), found.end()):
                yield Hit(found.start(), found.end())

    return find


def never(text: str, start: int, end: int) -> bool:
    return False


def beside(text: str, start: int, end: int) -> tuple[str, str]:
    """The characters before and after, empty at either end of the text."""
    return text[start - 1 : start] if start else "", text[end : end + 1]


def is_joining(text: str, start: int, end: int) -> bool:
    """One character, or the same typed twice, beside a letter that needs it; or the mark of a file."""
    run, (before, after) = text[start:end], beside(text, start, end)
    if run == BOM:
        return start == 0
    if run == ZWJ and is_in_emoji(before, after):
        return True
    home = AT_HOME.get(run[0])
    is_alone = run in (run[0], run[0] * 2)
    return bool(home and is_alone and (home.match(before) or home.match(after)))


def is_in_emoji(before: str, after: str) -> bool:
    return bool(EMOJI.match(after) and (before == EMOJI_STYLE or EMOJI.match(before)))


def is_among_right_to_left(text: str, start: int, end: int) -> bool:
    """Near letters that run from right to left, and not inside a word or number that does not."""
    before, after = beside(text, start, end)
    is_inside_word = before.isascii() and before.isalnum() and after.isascii() and after.isalnum()
    near = text[max(0, start - NEAR) : start] + text[end : end + NEAR]
    return end - start <= 2 and not is_inside_word and bool(RIGHT_TO_LEFT.search(near))


def is_flag(text: str, start: int, end: int) -> bool:
    return text[start - 1 : start] == BLACK_FLAG and text[start:end] in FLAGS


def is_stray(text: str, start: int, end: int) -> bool:
    """The two selectors people paste by accident, once or twice, and not inside a word."""
    before = text[start - 1 : start] if start else ""
    is_common = end - start <= 2 and set(text[start:end]) <= {TEXT_STYLE, EMOJI_STYLE}
    return is_common and not (before.isascii() and before.isalpha())


def is_no_stray(text: str, start: int, end: int) -> bool:
    return not is_stray(text, start, end)


def is_mojibake(text: str, start: int, end: int) -> bool:
    """What is left of an accent or a quotation mark that was once read in the wrong encoding."""
    return "\xa1" <= text[start - 1 : start] <= "\u0178" and min(text[start:end]) >= "\x80"


def is_no_mojibake(text: str, start: int, end: int) -> bool:
    return not is_mojibake(text, start, end)


invisible = runs(unicode_ranges.INVISIBLE, is_joining)
bidi_controls = runs(unicode_ranges.BIDI_CONTROLS, never)
bidi_marks = runs(unicode_ranges.BIDI_MARKS, is_among_right_to_left)
tag_characters = runs(unicode_ranges.TAGS, is_flag)
hidden_selectors = runs(unicode_ranges.VARIATION_SELECTORS, is_stray, SELECTING)
stray_selectors = runs(unicode_ranges.VARIATION_SELECTORS, is_no_stray, SELECTING)
controls = runs(unicode_ranges.CONTROLS, is_mojibake)
mojibake = runs(unicode_ranges.CONTROLS, is_no_mojibake)

UNSEEN = (
    *(invisible, bidi_controls, bidi_marks, tag_characters),
    *(hidden_selectors, stray_selectors, controls, mojibake),
)


def visible(text: str) -> str:
    """The text with a mark such as ⟦U+200B⟧ for every character that hides; those at work stay."""
    if not hidden_characters(text):
        return text
    said, at = [], 0
    for start, end, _ in sorted(hit for find in UNSEEN for hit in find(text)):
        said += [text[at:start], *(f"⟦U+{ord(hidden):04X}⟧" for hidden in text[start:end])]
        at = end
    return "".join([*said, text[at:]])

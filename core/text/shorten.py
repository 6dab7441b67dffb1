"""Shorten a text for a preview, at the end of a word."""

from unicodedata import combining

ELLIPSIS = "…"
TRAILING = " \n\t,;:–-"
# A zero-width joiner and variation selectors, which belong to the characters beside them.
JOINER = "\u200d"
SELECTORS = ("\ufe0e", "\ufe0f")


def shorten_text(text: str, length: int) -> str:
    """Return the text, or as many whole words as fit in `length` characters with an ellipsis."""
    if len(text) <= length:
        return text
    end = length - 1
    if not text[end].isspace():
        # A word is cut only if the text would lose more than half of its length otherwise.
        space = max(text.rfind(" ", end // 2, end), text.rfind("\n", end // 2, end))
        end = space if space > 0 else find_character_start(text, end)
    return f"{text[:end].rstrip(TRAILING)}{ELLIPSIS}"


def find_character_start(text: str, end: int) -> int:
    """Return the nearest offset that does not separate a character from its accents or joined emoji."""
    start = end
    while start > 0 and (
        combining(text[start])
        or text[start] in SELECTORS
        or text[start] == JOINER
        or text[start - 1] == JOINER
    ):
        start -= 1
    return start or end

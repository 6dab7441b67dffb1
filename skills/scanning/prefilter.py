"""Extract cheap features of a text once, so that most rules can be skipped without running their regex."""

import re
from collections.abc import Callable
from typing import NamedTuple

from skills.scanning.unicode_ranges import (
    CLOSING_SLASH_REGEX,
    HIDDEN_CHARACTERS,
    LESS_THAN_LOOK_ALIKES,
    compile_character_class,
)

HIDDEN_CHARACTER_PATTERN = compile_character_class(HIDDEN_CHARACTERS)
CLOSING_TAG_PATTERN, TAG_OR_COMMENT_PATTERN = (
    re.compile(f"[<{LESS_THAN_LOOK_ALIKES}]{CLOSING_SLASH_REGEX}"),
    re.compile(f"<(?:{CLOSING_SLASH_REGEX}|!--)"),
)
# Printable ASCII and white space, which are never reported as hidden characters.
PLAIN_BYTES = bytes([0x09, 0x0A, 0x0C, 0x0D, *range(0x20, 0x7F)])
KEY_CHARACTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:+/=-"
# Maps key characters to "X", other plain bytes to a space, and all other bytes to NUL.
KEY_MASK_TABLE = bytes(
    [0x58 if byte in KEY_CHARACTERS else 0x20 * (byte in PLAIN_BYTES) for byte in range(256)]
)
# The mask of the shortest key: 20 key characters.
MIN_KEY_MASK = b"X" * 20
WORD_LENGTH_FEATURES = {length: f"word of {length}" for length in (20, 40, 60)}
# One feature for each character that is rare in long words, the rarest first.
RARE_CHARACTER_FEATURES = {sign: f"word with {sign}" for sign in "JXKGzI=A_kx-"}

Span = tuple[int, int]


class TextFeatures(NamedTuple):
    text: str
    # Names of the features that the text has, see list_sign_features and list_word_features.
    names: frozenset[str]
    # The distinct hidden characters of the text.
    hidden_characters: str
    # The words that are long enough to be a key, joined by spaces.
    long_words: str


# A cheap check whether a rule can match a text. It must not return False if the rule would match. A test
# checks this for every rule.
RulePrefilter = Callable[[TextFeatures], bool]


def accept_any_text(features: TextFeatures) -> bool:
    return True


def extract_text_features(text: str) -> TextFeatures:
    mask = mask_key_characters(text)
    hidden_characters = "" if text.isascii() and b"\0" not in mask else find_hidden_characters(text)
    spans = find_masked_runs(mask)
    long_words = " ".join([text[start:end] for start, end in spans])
    longest = max([end - start for start, end in spans], default=0)
    names = ["hidden"] if hidden_characters else []
    return TextFeatures(
        text,
        frozenset(names + list_sign_features(text) + list_word_features(long_words, longest)),
        hidden_characters,
        long_words,
    )


def list_sign_features(text: str) -> list[str]:
    """List the features for single characters, front matter, closing tags and comments.

    The regexes for tags and comments run only if the text contains a bracket, which is faster to find.
    """
    names = [sign for sign in ("]", "@") if sign in text]
    if text.startswith(("---", "\ufeff---")):
        names.append("head")
    if has_bracket_look_alike(text) or ("<" in text and TAG_OR_COMMENT_PATTERN.search(text)):
        names += ["closing"] if CLOSING_TAG_PATTERN.search(text) else []
        names += ["comment"] if "<!--" in text else []
    return ["text", *names]


def list_word_features(long_words: str, longest: int) -> list[str]:
    """List the features for the longest word and for rare characters in long words."""
    lengths = [name for length, name in WORD_LENGTH_FEATURES.items() if longest >= length]
    return lengths + [name for sign, name in RARE_CHARACTER_FEATURES.items() if sign in long_words]


def has_bracket_look_alike(text: str) -> bool:
    return not text.isascii() and any(map(text.__contains__, LESS_THAN_LOOK_ALIKES))


def find_hidden_characters(text: str) -> str:
    unusual = text.encode(errors="surrogatepass").translate(None, PLAIN_BYTES).decode(errors="surrogatepass")
    return "".join(HIDDEN_CHARACTER_PATTERN.findall("".join(set(unusual))))


def find_long_words(text: str) -> list[Span]:
    """Return the span of each word that is long enough to be a key."""
    return find_masked_runs(mask_key_characters(text))


def mask_key_characters(text: str) -> bytes:
    """Return a mask with one byte per character, so that offsets in mask and text are equal.

    A space is added to end the last word.
    """
    return (text.encode("ascii", "replace") + b" ").translate(KEY_MASK_TABLE)


def find_masked_runs(mask: bytes) -> list[Span]:
    spans, mask, end = [], mask.replace(b"\0", b" "), 0
    while (start := mask.find(MIN_KEY_MASK, end)) >= 0:
        end = mask.index(b" ", start)
        spans.append((start, end))
    return spans

"""What one quick look at a text tells: most rules need no other to know that they have nothing to say."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from skills.scanning.alphabets import CLOSER, HIDING, LIKE_LESS, one_of

HIDDEN = one_of(HIDING)
ASCII_CLOSER, ANY_CLOSER = re.compile(f"<{CLOSER}"), re.compile(f"[<{LIKE_LESS}]{CLOSER}")
# Printable ASCII and what lays it out: nearly all of most texts, and nothing in it hides.
PLAIN = bytes([0x09, 0x0A, 0x0C, 0x0D, *range(0x20, 0x7F)])
KEY_SIGNS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:+/=-"
# What keys are made of becomes a cross, other plain signs a gap, and the rest nought.
CROSSES = bytes([0x58 if byte in KEY_SIGNS else 0x20 * (byte in PLAIN) for byte in range(256)])
# No key is shorter.
LONG = b"X" * 20
# Few words hold these, the first least.
RARE = "JXKGzI=A_kx-"

Span = tuple[int, int]


class Glance(NamedTuple):
    text: str
    # Names of what was seen; see below.
    sights: frozenset[str]
    # Every character that may hide something, in order.
    hidden: str
    # The words long enough to be a key, with spaces between.
    long_words: str


# Never false where the rule would find something; a test holds every rule to that.
Gate = Callable[[Glance], bool]


def always(look: Glance) -> bool:
    return True


def glance(text: str) -> Glance:
    crosses = crossed(text)
    hidden = "" if text.isascii() and b"\0" not in crosses else hidden_characters(text)
    words = [text[start:end] for start, end in long_rows(crosses)]
    seen = frozenset([*signs(text), *(among(words) if words else ()), *(["hidden"] if hidden else ())])
    return Glance(text, seen, hidden, " ".join(words))


def signs(text: str) -> Iterator[str]:
    """Single signs are asked for first, since they are found soonest."""
    yield "text"
    yield from (sign for sign in "]@" if sign in text)
    if may_close(text):
        yield "closing"
    if "<" in text and "<!--" in text:
        yield "comment"
    if text.startswith(("---", "\ufeff---")):
        yield "head"


def among(words: list[str]) -> Iterator[str]:
    """How long the longest word is, and which rare signs stand in the long ones."""
    longest, all_words = max(map(len, words)), " ".join(words)
    yield from (f"word of {length}" for length in (20, 40, 60) if longest >= length)
    yield from (f"word with {sign}" for sign in RARE if sign in all_words)


def may_close(text: str) -> bool:
    if has_look_alike(text):
        return bool(ANY_CLOSER.search(text))
    return "<" in text and bool(ASCII_CLOSER.search(text))


def has_look_alike(text: str) -> bool:
    return not text.isascii() and any(map(text.__contains__, LIKE_LESS))


def hidden_characters(text: str) -> str:
    unusual = text.encode(errors="surrogatepass").translate(None, PLAIN).decode(errors="surrogatepass")
    return "".join(HIDDEN.findall(unusual))


def long_words(text: str) -> list[Span]:
    """Where each begins and ends."""
    return long_rows(crossed(text))


def crossed(text: str) -> bytes:
    """A byte for each character, so that places are the same, and a gap to end the last word."""
    return (text.encode("ascii", "replace") + b" ").translate(CROSSES)


def long_rows(crosses: bytes) -> list[Span]:
    rows, crosses, end = [], crosses.replace(b"\0", b" "), 0
    while (start := crosses.find(LONG, end)) >= 0:
        end = crosses.index(b" ", start)
        rows.append((start, end))
    return rows

"""What one quick look at a text tells: most rules need no other to know that they have nothing to say."""

import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from skills.scanning.alphabets import HIDING, one_of

# "tag" is a bracket that may begin one, "head" the first line of front matter.
Sight = Literal["text", "hidden", "long word", "tag", "]", "@", "head"]

HIDDEN = one_of(HIDING)
# A model reads these as what they look like.
LIKE_LESS = "\uff1c\ufe64\u2039\u27e8\u3008"
# Printable ASCII and what lays it out: nearly all of most texts, and nothing in it hides.
PLAIN = bytes([0x09, 0x0A, 0x0C, 0x0D, *range(0x20, 0x7F)])
KEY_SIGNS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:+/=-"
# What keys are made of becomes a cross, other plain signs a gap, and the rest nought.
CROSSES = bytes([0x58 if byte in KEY_SIGNS else 0x20 * (byte in PLAIN) for byte in range(256)])
NO_CROSS = re.compile(rb"[^X]")
# No key is shorter.
LONG = b"X" * 20


class Glance(NamedTuple):
    text: str
    sights: frozenset[Sight]
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
    words = " ".join([text[start:end] for start, end in long_rows(crosses)])
    return Glance(text, frozenset(sights(text, hidden, words)), hidden, words)


def sights(text: str, hidden: str, words: str) -> Iterator[Sight]:
    yield "text"
    if hidden:
        yield "hidden"
    if words:
        yield "long word"
    if "<" in text or (not text.isascii() and any(map(text.__contains__, LIKE_LESS))):
        yield "tag"
    if "]" in text:
        yield "]"
    if "@" in text:
        yield "@"
    if text.startswith(("---", "\ufeff---")):
        yield "head"


def hidden_characters(text: str) -> str:
    unusual = text.encode(errors="surrogatepass").translate(None, PLAIN).decode(errors="surrogatepass")
    return "".join(HIDDEN.findall(unusual))


def long_words(text: str) -> Iterator[tuple[int, int]]:
    """Where each begins and ends."""
    return long_rows(crossed(text))


def crossed(text: str) -> bytes:
    """A byte for each character, so that places are the same, and a gap to end the last word."""
    return (text.encode("ascii", "replace") + b" ").translate(CROSSES)


def long_rows(crosses: bytes) -> Iterator[tuple[int, int]]:
    end = 0
    while (start := crosses.find(LONG, end)) >= 0:
        gap = NO_CROSS.search(crosses, start)
        end = gap.start() if gap else len(crosses)
        yield start, end

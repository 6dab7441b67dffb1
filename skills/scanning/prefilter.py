"""What one quick look at a text tells: most rules need no other to know that they have nothing to say."""

import re
from collections.abc import Callable
from typing import NamedTuple

from skills.scanning.unicode_ranges import CLOSER, HIDING, LIKE_LESS, one_of

HIDDEN = one_of(HIDING)
CLOSING, CLOSING_OR_COMMENT = re.compile(f"[<{LIKE_LESS}]{CLOSER}"), re.compile(f"<(?:{CLOSER}|!--)")
# Printable ASCII and what lays it out: nearly all of most texts, and nothing in it hides.
PLAIN = bytes([0x09, 0x0A, 0x0C, 0x0D, *range(0x20, 0x7F)])
KEY_SIGNS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:+/=-"
# What keys are made of becomes a cross, other plain signs a gap, and the rest nought.
CROSSES = bytes([0x58 if byte in KEY_SIGNS else 0x20 * (byte in PLAIN) for byte in range(256)])
# No key is shorter.
LONG = b"X" * 20
WORD_OF = {length: f"word of {length}" for length in (20, 40, 60)}
# Few words hold these, the first least.
WORD_WITH = {sign: f"word with {sign}" for sign in "JXKGzI=A_kx-"}

Span = tuple[int, int]


class Glance(NamedTuple):
    text: str
    # Names of what was seen; see below.
    sights: frozenset[str]
    # The characters that may hide something, each once.
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
    rows = long_rows(crosses)
    words = " ".join([text[start:end] for start, end in rows])
    longest = max([end - start for start, end in rows], default=0)
    seen = ["hidden"] if hidden else []
    return Glance(text, frozenset(seen + signs(text) + shapes(words, longest)), hidden, words)


def signs(text: str) -> list[str]:
    """Single signs are asked for first, since they are found soonest."""
    seen = [sign for sign in ("]", "@") if sign in text]
    if text.startswith(("---", "\ufeff---")):
        seen.append("head")
    if has_look_alike(text) or ("<" in text and CLOSING_OR_COMMENT.search(text)):
        seen += ["closing"] if CLOSING.search(text) else []
        seen += ["comment"] if "<!--" in text else []
    return ["text", *seen]


def shapes(words: str, longest: int) -> list[str]:
    """How long the longest word is, and which rare signs stand in the long ones."""
    lengths = [name for length, name in WORD_OF.items() if longest >= length]
    return lengths + [name for sign, name in WORD_WITH.items() if sign in words]


def has_look_alike(text: str) -> bool:
    return not text.isascii() and any(map(text.__contains__, LIKE_LESS))


def hidden_characters(text: str) -> str:
    unusual = text.encode(errors="surrogatepass").translate(None, PLAIN).decode(errors="surrogatepass")
    return "".join(HIDDEN.findall("".join(set(unusual))))


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

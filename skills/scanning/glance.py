"""What one quick look at a text tells: most rules need no other to know that they have nothing to say."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from skills.scanning.alphabets import HIDING, one_of

HIDDEN = one_of(HIDING)
# Printable ASCII and what lays it out: nearly all of most texts, and nothing in it hides.
PLAIN = bytes([0x09, 0x0A, 0x0C, 0x0D, *range(0x20, 0x7F)])
# What keys are made of becomes a row of crosses, everything else a gap.
KEY_SIGNS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:+/=-")
CROSSES = bytes([0x58 if byte in KEY_SIGNS else 0x20 for byte in range(256)])
# No key is shorter.
LONG = b"X" * 20


class Glance(NamedTuple):
    text: str
    # Every character that may hide something, in order.
    hidden: str
    # The words long enough to be a key, with spaces between: few, and none in many texts.
    long_words: str


# Never false where the rule would find something; a test holds every rule to that.
Gate = Callable[[Glance], bool]


def glance(text: str) -> Glance:
    unusual = text.encode(errors="surrogatepass").translate(None, PLAIN).decode(errors="surrogatepass")
    hidden = "".join(HIDDEN.findall(unusual)) if unusual else ""
    return Glance(text, hidden, " ".join([text[start:end] for start, end in long_words(text)]))


def long_words(text: str) -> Iterator[tuple[int, int]]:
    """Where each begins and ends."""
    # A byte for each character, so that places are the same; the gap at the end ends the last word.
    crosses, end = (text.encode("ascii", "replace") + b" ").translate(CROSSES), 0
    while (start := crosses.find(LONG, end)) >= 0:
        end = crosses.index(b" ", start)
        yield start, end


def always(look: Glance) -> bool:
    return True

"""What one quick look at a text tells: most rules need no other to know that they have nothing to say."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

# Printable ASCII and what lays it out: nearly all of most texts, and nothing in it hides.
PLAIN = bytes([0x09, 0x0A, 0x0C, 0x0D, *range(0x20, 0x7F)])
# Words become rows of crosses; what is not ASCII counts as a part of them.
CROSSES = bytes([0x20 if byte in b" \t\n\v\f\r" else 0x58 for byte in range(256)])
# No key is shorter.
LONG = b"X" * 20


class Glance(NamedTuple):
    text: str
    # Every character that is not plain, in order.
    unusual: str
    # The words long enough to be a key, with spaces between: few, and none in many texts.
    long_words: str


# Never false where the rule would find something; a test holds every rule to that.
Gate = Callable[[Glance], bool]


def glance(text: str) -> Glance:
    unusual = text.encode(errors="surrogatepass").translate(None, PLAIN).decode(errors="surrogatepass")
    return Glance(text, unusual, " ".join([text[start:end] for start, end in long_words(text)]))


def long_words(text: str) -> Iterator[tuple[int, int]]:
    """Where each begins and ends."""
    # A byte for each character, so that places are the same; the space ends the last word.
    crosses, end = (text.encode("ascii", "replace") + b" ").translate(CROSSES), 0
    while (start := crosses.find(LONG, end)) >= 0:
        end = crosses.index(b" ", start)
        yield start, end


def always(look: Glance) -> bool:
    return True

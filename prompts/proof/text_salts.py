"""The salts of texts that consist of several contents: the text of a version, and a served text.

The digest of such a text is salted with all salts of its contents. If one content is erased, its salt is
gone, and the text cannot be guessed from its digest.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from core.salted_digests import combine_salts

# The keys of a stored segment whose values are content digests.
CONTENT_KEYS = ("content", "given")


def combine_text_salts(segments: Iterable[Mapping[str, Any]], salts: Mapping[str, str]) -> str:
    """Return the salt of the text of a version, from the salts of its contents by digest."""
    return combine_salts(
        [salts.get(row[name], "") for row in segments for name in CONTENT_KEYS if name in row]
    )


def combine_input_salts(inputs: Iterable[str], salts: Mapping[str, str]) -> str:
    """Return the salt of the stored inputs of a version, which are given by digest."""
    return combine_salts([salts.get(digest, "") for digest in sorted(inputs)])


def combine_served_salts(text: str, inputs: str, values: Sequence[str]) -> str:
    """Return the salt of a served text.

    It consists of the salt of the version's text, that of its inputs if the call was built from them, and
    the salts of the values of the call. If the call sent none, it is that of the text.
    """
    if not inputs and not any(values):
        return text
    return combine_salts([text, inputs, *values])

"""Values of a call as a ledger row stores them: the time in the row, all other values apart under digests.

Ledger rows never change, and the values of a call may have to be erased. So the row names them by salted
digests only. The member `contents` of the stored values has these digests by name: of each long value, and of
all short values together as `values`. No slot has one of these names. The seal of the row covers the stored
values, and so the digests.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from prompts.proof.canonical import canonical_json

CONTENTS_KEY, SHORT_VALUES_KEY = "contents", "values"
# Values that are stored in the ledger row itself: only the time, which the server fills in.
INLINE_NAMES = frozenset({"now"})
# Bytes of canonical JSON. Longer values are stored once per workspace, however many calls send them.
MAX_SHORT_SIZE = 1_024
StoredValues = dict[str, Any]


class MissingCallValue(LookupError):
    """A value is not stored any more, for example because it was erased."""


class SplitValues(NamedTuple):
    """The values of a call: those in the ledger row, and the others as canonical JSON."""

    inline: StoredValues
    # Name and plain SHA-256 of each content.
    names: Mapping[str, str]
    # By plain SHA-256.
    contents: Mapping[str, bytes]

    def encode(self, digests: Mapping[str, str]) -> bytes:
        """Return what the ledger row stores. `digests` are those of the contents by their plain SHA-256."""
        named = {name: digests[plain] for name, plain in self.names.items()}
        return canonical_json(self.inline | ({CONTENTS_KEY: named} if named else {}))


def split_call_values(values: Mapping[str, Any]) -> SplitValues:
    inline = {name: value for name, value in values.items() if name in INLINE_NAMES}
    encoded = {name: canonical_json(value) for name, value in values.items() if name not in inline}
    contents = {name: data for name, data in encoded.items() if len(data) > MAX_SHORT_SIZE}
    short = {name: values[name] for name in encoded if name not in contents}
    if short:
        contents[SHORT_VALUES_KEY] = canonical_json(short)
    names = {name: sha256(data).hexdigest() for name, data in contents.items()}
    return SplitValues(inline, names, {names[name]: data for name, data in contents.items()})


def get_value_digests(stored: Mapping[str, Any]) -> dict[str, str]:
    """Return the digests of the values that are stored apart, by name."""
    digests: dict[str, str] = dict(stored.get(CONTENTS_KEY, {}))
    return digests


def list_value_salts(stored: Mapping[str, Any], salts: Mapping[str, str]) -> list[str]:
    """List the salts of the values that are stored apart, in the order of their names."""
    return [salts.get(digest, "") for _, digest in sorted(get_value_digests(stored).items())]


def join_call_values(stored: Mapping[str, Any], contents: Mapping[str, bytes | str | None]) -> StoredValues:
    """Return all values of the call. Raise MissingCallValue if the content of one is missing."""
    values = {name: value for name, value in stored.items() if name != CONTENTS_KEY}
    for name, digest in get_value_digests(stored).items():
        data = contents.get(digest)
        if data is None:
            raise MissingCallValue(name)
        value = json.loads(data)
        values |= value if name == SHORT_VALUES_KEY else {name: value}
    return values

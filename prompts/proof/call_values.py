"""Values of a call as a ledger row stores them: short ones in the row, long ones apart under their digest.

The member `contents` of the stored values has the digest of each long value by its name. No slot has that
name. The seal of the row covers the stored values, and so these digests.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from prompts.proof.canonical import canonical_json

CONTENTS_KEY = "contents"
# Bytes of canonical JSON. Longer values are stored once per workspace, however many calls send them.
MAX_INLINE_SIZE = 1_024
StoredValues = dict[str, Any]


class MissingCallValue(LookupError):
    """A long value is not stored any more, for example because it was erased."""


def split_call_values(values: Mapping[str, Any]) -> tuple[StoredValues, dict[str, bytes]]:
    """Return the values as the ledger row stores them, and the long values as canonical JSON by digest."""
    encoded = {name: canonical_json(value) for name, value in values.items()}
    long = {name: data for name, data in encoded.items() if len(data) > MAX_INLINE_SIZE}
    if not long:
        return dict(values), {}
    digests = {name: sha256(data).hexdigest() for name, data in long.items()}
    stored = {name: value for name, value in values.items() if name not in long}
    return stored | {CONTENTS_KEY: digests}, {digests[name]: data for name, data in long.items()}


def get_value_digests(stored: Mapping[str, Any]) -> dict[str, str]:
    """Return the digests of the long values by name."""
    digests: dict[str, str] = dict(stored.get(CONTENTS_KEY, {}))
    return digests


def join_call_values(stored: Mapping[str, Any], contents: Mapping[str, bytes | str | None]) -> StoredValues:
    """Return all values of the call. Raise MissingCallValue if the content of one is missing."""
    values = {name: value for name, value in stored.items() if name != CONTENTS_KEY}
    for name, digest in get_value_digests(stored).items():
        data = contents.get(digest)
        if data is None:
            raise MissingCallValue(name)
        values[name] = json.loads(data)
    return values

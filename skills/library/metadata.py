"""Format and parse skill metadata as text with one “key: value” per line."""

from collections.abc import Mapping

from django.utils.translation import gettext as _

MAX_METADATA_LENGTH = 8_000


def format_metadata(metadata: Mapping[str, str]) -> str:
    return "\n".join(f"{key}: {value}" for key, value in metadata.items())


def parse_metadata(text: str) -> dict[str, str]:
    """Parse text with one “key: value” per line.

    If a line is malformed or a key occurs twice, raise ValueError with a message for users.
    """
    pairs = [line.partition(":") for line in text.splitlines() if line.strip()]
    for number, (key, colon, _value) in enumerate(pairs, start=1):
        if not colon or not key.strip():
            raise ValueError(_("Line %(number)s must have the form “key: value”.") % {"number": number})
    keys = [key.strip() for key, _, _ in pairs]
    if duplicates := {key for key in keys if keys.count(key) > 1}:
        raise ValueError(
            _("Duplicate keys: %(keys)s. Use each key only once.") % {"keys": ", ".join(sorted(duplicates))}
        )
    return {key.strip(): value.strip() for key, _, value in pairs}


def is_metadata_editable(metadata: Mapping[str, str]) -> bool:
    """Return whether a user can load the metadata into the form and save it without changing it."""
    text = format_metadata(metadata)
    try:
        return len(text) <= MAX_METADATA_LENGTH and parse_metadata(text) == metadata
    except ValueError:
        return False

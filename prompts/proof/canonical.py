"""Canonical JSON, and SHA-256 digests over it with domain separation."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from typing import Any

from core.text.strict_json import DuplicateKeyError, parse_strict_json

# The deepest nesting of a value that is accepted. Deeper recursion could exhaust the stack.
MAX_DEPTH = 64
TEXT_TYPES, SCALAR_TYPES = frozenset({str}), frozenset({str, int, bool, type(None)})
DOMAIN_PATTERN = re.compile(r"[a-z]+(-[a-z]+)*")
CANONICAL_ENCODER = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)


class CanonicalFormError(ValueError):
    """The value has no canonical form. The message says why."""


def build_encoder() -> Callable[[Any], str]:
    """Build an encoder that is reused for all values.

    `JSONEncoder.encode` would create a new C encoder for every value, which is slower.
    """
    make_encoder = getattr(json.encoder, "c_make_encoder", None)
    if make_encoder is None:
        return CANONICAL_ENCODER.encode
    encode = make_encoder(
        None, CANONICAL_ENCODER.default, json.encoder.encode_basestring, None, ":", ",", True, False, False
    )
    return lambda value: "".join(encode(value, 0))


encode_json = build_encoder()


def canonical_json(value: Any) -> bytes:
    """Encode a value as canonical JSON: UTF-8, sorted keys, no spaces, no floats, times in UTC."""
    return encode_json(plain_json(value)).encode()


def encode_plain_json(value: Any) -> bytes:
    """Encode a value as `canonical_json` does, if it consists of dict, list, str, int, bool and None only.

    The conversion with `plain_json` is skipped for speed.
    """
    return encode_json(value).encode()


def canonical_digest(domain: str, value: Any) -> str:
    """Return the SHA-256, in hex, of a domain prefix and the canonical JSON of a value.

    `domain` names the kind of value, so that equal values of different kinds have different digests.
    """
    return sha256(build_digest_message(domain, value)).hexdigest()


def bytes_digest(domain: str, data: bytes) -> str:
    """Return the `canonical_digest` of a value that is already encoded as canonical JSON."""
    return sha256(get_domain_prefix(domain) + data).hexdigest()


def json_digest(domain: str, value: Any) -> str:
    """Return the `canonical_digest` of a value that was read from JSON.

    The value has only plain types already, so the conversion with `plain_json` is skipped for speed.
    """
    return sha256(get_domain_prefix(domain) + encode_plain_json(value)).hexdigest()


def build_digest_message(domain: str, value: Any) -> bytes:
    """Build the bytes that are hashed or signed: the prefix of the domain and the canonical JSON."""
    return get_domain_prefix(domain) + canonical_json(value)


def text_digest(text: str) -> str:
    """Return the plain SHA-256 of a text in UTF-8, as sha256sum prints it."""
    return sha256(text.encode()).hexdigest()


class ListDigest:
    """Compute the `canonical_digest` of a list incrementally, without keeping the list in memory."""

    def __init__(self, domain: str) -> None:
        self.hashed = sha256(get_domain_prefix(domain) + b"[")
        self.count = 0

    def add(self, item: Any) -> None:
        self.hashed.update(b"," + canonical_json(item) if self.count else canonical_json(item))
        self.count += 1

    def hexdigest(self) -> str:
        digest = self.hashed.copy()
        digest.update(b"]")
        return digest.hexdigest()


@cache
def get_domain_prefix(domain: str) -> bytes:
    if not DOMAIN_PATTERN.fullmatch(domain):
        raise CanonicalFormError(f"{domain!r} is not a valid digest domain.")
    return f"dramatis:{domain}:v1\n".encode()


def plain_json(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Convert a value to dict, list, str, int, bool and None. Timestamps become text.

    Raise CanonicalFormError for other types, such as float.
    """
    kind = type(value)
    if kind in SCALAR_TYPES:
        return value
    if kind is datetime or isinstance(value, datetime):
        return format_timestamp(value)
    if not depth:
        raise CanonicalFormError(f"Nested more than {MAX_DEPTH} levels deep.")
    if kind is dict or isinstance(value, Mapping):
        return plain_json_object(value, depth - 1)
    if isinstance(value, list | tuple):
        return [item if type(item) in SCALAR_TYPES else plain_json(item, depth - 1) for item in value]
    if isinstance(value, str | int):
        return value
    raise CanonicalFormError(f"A {kind.__name__} has no canonical form.")


def plain_json_object(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    if not TEXT_TYPES.issuperset(map(type, value)):
        check_text_keys(value)
    # Checking for scalars here saves a function call per value: millions of rows consist mostly of scalars.
    return {
        key: item if type(item) in SCALAR_TYPES else plain_json(item, depth) for key, item in value.items()
    }


def check_text_keys(value: Mapping[Any, Any]) -> None:
    for key in value:
        if not isinstance(key, str):
            raise CanonicalFormError(f"A key must be text, not a {type(key).__name__}.")


def format_timestamp(value: datetime) -> str:
    """Format a timestamp in UTC with microseconds, such as 2026-03-07T14:55:05.000000Z."""
    if value.tzinfo is None:
        raise CanonicalFormError("A time must have a UTC offset.")
    if value.tzinfo is not UTC:
        try:
            value = value.astimezone(UTC)
        except OverflowError:
            raise CanonicalFormError("A time must be between the years 1 and 9999 in UTC.") from None
    return value.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def parse_canonical_json(text: str | bytes) -> Any:
    """Parse JSON. Raise ValueError for invalid JSON, floats, duplicate keys and deep nesting."""
    try:
        return plain_json(parse_strict_json(text, parse_float=reject_float, parse_constant=reject_float))
    except DuplicateKeyError:
        raise CanonicalFormError("Duplicate key.") from None
    except RecursionError:
        raise CanonicalFormError(f"Nested more than {MAX_DEPTH} levels deep.") from None


def reject_float(text: str) -> Any:
    raise CanonicalFormError(f"{text[:40]} is not a whole number.")

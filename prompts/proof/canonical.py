"""One JSON form for every value, and digests over it that say what they are digests of."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from typing import Any

# Deeper than any honest value; without a bound the stack would be the bound.
MAX_DEPTH = 64
TEXT_TYPES, SCALAR_TYPES = frozenset({str}), frozenset({str, int, bool, type(None)})
DOMAIN_PATTERN = re.compile(r"[a-z]+(-[a-z]+)*")
CANONICAL_ENCODER = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)


class CanonicalFormError(ValueError):
    """A value that has no canonical form, with the reason."""


def build_encoder() -> Callable[[Any], str]:
    """What writes plain values; the library's own `encode` makes its inner part anew for every value."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return CANONICAL_ENCODER.encode
    spell = make(
        None, CANONICAL_ENCODER.default, json.encoder.encode_basestring, None, ":", ",", True, False, False
    )
    return lambda value: "".join(spell(value, 0))


encode_json = build_encoder()


def canonical_json(value: Any) -> bytes:
    """The value as JSON that has one spelling: UTF-8, sorted keys, no spaces, no floats, times in UTC."""
    return encode_json(plain_json(value)).encode()


def canonical_digest(domain: str, value: Any) -> str:
    """SHA-256 of the value; the domain keeps equal values of two kinds apart."""
    return sha256(build_digest_message(domain, value)).hexdigest()


def bytes_digest(domain: str, written: bytes) -> str:
    """The same for a value that stands in its canonical form already."""
    return sha256(get_domain_prefix(domain) + written).hexdigest()


def json_digest(domain: str, value: Any) -> str:
    """The same for a value just read from JSON, which is plain already: rows are many and lists are long."""
    return sha256(get_domain_prefix(domain) + encode_json(value).encode()).hexdigest()


def build_digest_message(domain: str, value: Any) -> bytes:
    """The very bytes that are hashed or signed."""
    return get_domain_prefix(domain) + canonical_json(value)


def text_digest(text: str) -> str:
    """Plain SHA-256 of the words in UTF-8, as sha256sum would give it."""
    return sha256(text.encode()).hexdigest()


class ListDigest:
    """The digest of a list that is too long to hold: the same as `digest` of the whole."""

    def __init__(self, domain: str) -> None:
        self.hashed = sha256(get_domain_prefix(domain) + b"[")
        self.count = 0

    def add(self, item: Any) -> None:
        self.hashed.update(b"," + canonical_json(item) if self.count else canonical_json(item))
        self.count += 1

    def hexdigest(self) -> str:
        whole = self.hashed.copy()
        whole.update(b"]")
        return whole.hexdigest()


@cache
def get_domain_prefix(domain: str) -> bytes:
    if not DOMAIN_PATTERN.fullmatch(domain):
        raise CanonicalFormError(f"{domain!r} cannot name a kind of digest.")
    return f"dramatis:{domain}:v1\n".encode()


def plain_json(value: Any, depth: int = MAX_DEPTH) -> Any:
    """The value in dict, list, str, int, bool and None alone; ValueError for what has no such form."""
    kind = type(value)
    if kind in SCALAR_TYPES:
        return value
    if kind is datetime or isinstance(value, datetime):
        return format_timestamp(value)
    if not depth:
        raise CanonicalFormError(f"Nested more than {MAX_DEPTH} deep.")
    if kind is dict or isinstance(value, Mapping):
        return plain_json_object(value, depth - 1)
    if isinstance(value, list | tuple):
        return [item if type(item) in SCALAR_TYPES else plain_json(item, depth - 1) for item in value]
    if isinstance(value, str | int):
        return value
    raise CanonicalFormError(f"A {kind.__name__} has no form that is the same everywhere.")


def plain_json_object(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    if not TEXT_TYPES.issuperset(map(type, value)):
        check_text_keys(value)
    # Looked at here and not one call deeper: a row is mostly leaves, and there are millions of rows.
    return {
        key: item if type(item) in SCALAR_TYPES else plain_json(item, depth) for key, item in value.items()
    }


def check_text_keys(value: Mapping[Any, Any]) -> None:
    for key in value:
        if not isinstance(key, str):
            raise CanonicalFormError(f"A key must be text, not a {type(key).__name__}.")


def format_timestamp(value: datetime) -> str:
    """A time in UTC with microseconds, such as 2026-03-07T14:55:05.000000Z."""
    if value.tzinfo is None:
        raise CanonicalFormError("A time must say its offset from UTC.")
    if value.tzinfo is not UTC:
        try:
            value = value.astimezone(UTC)
        except OverflowError:
            raise CanonicalFormError("A time must lie between the years 1 and 9999 in UTC.") from None
    return value.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def parse_strict_json(text: str | bytes) -> Any:
    """JSON that means one thing only: no floats, no key twice, not nested too deep; ValueError otherwise."""
    try:
        return plain_json(
            json.loads(
                text,
                object_pairs_hook=build_unique_object,
                parse_float=reject_float,
                parse_constant=reject_float,
            )
        )
    except RecursionError:
        raise CanonicalFormError(f"Nested more than {MAX_DEPTH} deep.") from None


def build_unique_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise CanonicalFormError("A key stands twice.")
    return made


def reject_float(text: str) -> Any:
    raise CanonicalFormError(f"{text[:40]} is not a whole number.")

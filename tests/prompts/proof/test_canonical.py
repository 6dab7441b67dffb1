"""Canonical JSON: each value has exactly one encoding, and ambiguous input is rejected."""

import json
from collections import OrderedDict
from datetime import UTC, datetime, timedelta, timezone
from enum import IntEnum, StrEnum
from hashlib import sha256
from types import MappingProxyType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prompts.proof.canonical import (
    CANONICAL_ENCODER,
    MAX_DEPTH,
    ListDigest,
    canonical_digest,
    canonical_json,
    encode_json,
    json_digest,
    parse_canonical_json,
    text_digest,
)
from tests.example_counts import examples

texts = st.text(st.characters(exclude_categories=["Cs"]))
zones = st.integers(-1_439, 1_439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
timestamps = st.datetimes(timezones=st.timezones() | zones).filter(lambda when: 1 < when.year < 9_999)
leaves = st.none() | st.booleans() | st.integers() | texts
values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=20)
floats = st.floats()


def typed(value):
    """Tag values with their type, because JSON distinguishes true from 1 and Python does not."""
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    return [typed(item) for item in value] if isinstance(value, list) else (type(value), value)


def shuffled(value):
    """Return an equal value with another key order and other containers."""
    if isinstance(value, dict):
        return OrderedDict((key, shuffled(value[key])) for key in reversed(value))
    return tuple(shuffled(item) for item in value) if isinstance(value, list) else value


def reading_gives_the_value_back_and_writing_again_the_same_bytes(value):
    written = canonical_json(value)
    assert typed(json.loads(written)) == typed(value)
    assert canonical_json(parse_canonical_json(written)) == written


def what_was_just_read_from_json_has_the_same_digest_more_quickly(value):
    read = json.loads(json.dumps(value))
    assert json_digest("slots", read) == canonical_digest("slots", value)


def the_quick_way_to_write_is_the_librarys(value):
    assert encode_json(value) == CANONICAL_ENCODER.encode(value)


def neither_order_nor_container_shows(value):
    assert canonical_json(shuffled(value)) == canonical_json(value)


LAWS = (
    reading_gives_the_value_back_and_writing_again_the_same_bytes,
    what_was_just_read_from_json_has_the_same_digest_more_quickly,
    the_quick_way_to_write_is_the_librarys,
    neither_order_nor_container_shows,
)


@pytest.mark.slow
@given(values)
def test_every_law_holds_for_any_value(value):
    """Check all laws for each example, because generating an example takes longer than checking it."""
    for law in LAWS:
        law(value)


@pytest.mark.slow
@given(values, values)
def test_equal_values_have_equal_bytes_and_others_have_not(first, second):
    assert (canonical_json(first) == canonical_json(second)) == (typed(first) == typed(second))


@pytest.mark.slow
@given(values, floats, texts)
def test_a_float_is_rejected_at_any_depth(value, number, key):
    for holder in (number, [value, number], {key: number}, {key: [value, {key: number}]}):
        with pytest.raises(ValueError, match="float"):
            canonical_json(holder)


# Generating the first example is slow, because it loads all time zones from their files.
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(timestamps)
def test_a_time_is_the_same_whatever_its_zone(when):
    elsewhere = when.astimezone(timezone(timedelta(hours=5, minutes=45)))
    assert canonical_json(when) == canonical_json(elsewhere)
    assert datetime.fromisoformat(json.loads(canonical_json(when))) == when.astimezone(UTC)


def test_the_form_is_exact():
    value = {"z": [1, -2, True, None], "Ä": 'é\n\x01\x7f/"\\', "a": {"": ()}, "😀": "\u2028", "ﬀ": 10**20}
    expected = '{"a":{"":[]},"z":[1,-2,true,null],"Ä":"é\\n\\u0001\x7f/\\"\\\\",'
    expected += '"ﬀ":100000000000000000000,"😀":"\u2028"}'
    assert canonical_json(value) == expected.encode()
    assert canonical_json(datetime(2026, 3, 7, 14, 55, 5, tzinfo=UTC)) == b'"2026-03-07T14:55:05.000000Z"'
    assert canonical_json(datetime(33, 1, 2, tzinfo=UTC)) == b'"0033-01-02T00:00:00.000000Z"'


def test_kinds_of_text_and_number_count_as_what_they_are():
    class Word(StrEnum):
        RED = "red"

    class Number(IntEnum):
        ONE = 1

    assert canonical_json({Word.RED: Number.ONE}) == b'{"red":1}'
    assert canonical_json(MappingProxyType({"a": Word.RED})) == b'{"a":"red"}'


@pytest.mark.parametrize(
    "value",
    [
        {1: "a"},
        {None: "a"},
        {"a": {2.0: "b"}},
        b"bytes",
        {"a", "b"},
        object(),
        datetime(2026, 3, 7),  # noqa: DTZ001  # without an offset, which is the point
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))),
        "half a pair: \ud800",
        {"\udfff": 1},
        float("nan"),
        10**5_000,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_form_is_refused(value):
    with pytest.raises(ValueError, match=r"."):
        canonical_json(value)


def test_depth_is_bounded_and_a_circle_ends():
    nested: list = []
    for _ in range(MAX_DEPTH - 1):
        nested = [nested]
    assert canonical_json(nested)
    circle: dict = {}
    circle["self"] = circle
    for value in ([[nested]], circle):
        with pytest.raises(ValueError, match="deep"):
            canonical_json(value)


@pytest.mark.parametrize(
    "text", ["1.0", "[NaN]", '{"a":-Infinity}', "1e3", '{"a":1,"a":1}', "{", "[" * 5_000]
)
def test_json_that_could_mean_two_things_is_not_read(text):
    with pytest.raises(ValueError, match=r"."):
        parse_canonical_json(text)


def test_a_digest_covers_its_domain():
    assert canonical_digest("slots", {}) == sha256(b"dramatis:slots:v1\n{}").hexdigest()
    assert canonical_digest("slots", {}) != canonical_digest("lockfile", {})


@pytest.mark.parametrize("domain", ["", "a:b", "A", "a\n", "a-", "a b"])
def test_a_domain_cannot_be_mistaken_for_another(domain):
    with pytest.raises(ValueError, match="not a valid digest domain"):
        canonical_digest(domain, {})


@pytest.mark.slow
@settings(max_examples=examples(15, hard=100))
@given(st.lists(values, max_size=5))
def test_a_list_digested_item_by_item_has_the_digest_of_the_list(items):
    digest = ListDigest("slots")
    for item in items:
        digest.add(item)
    assert digest.hexdigest() == canonical_digest("slots", items)
    assert digest.count == len(items)


def test_texts_have_their_plain_sha256():
    assert text_digest("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

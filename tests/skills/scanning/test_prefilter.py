"""The prefilter skips most rules and never loses a finding."""

from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benches.source import BODY
from skills.scanning import SCAN_RULES, scan_text
from skills.scanning.prefilter import extract_text_features, find_long_words
from skills.scanning.secrets import TOKEN_PATTERNS
from tests.example_counts import examples
from tests.skills.scanning.scanning_samples import FURTHER, INNOCENT, MARKDOWN, PROSE, SAMPLES

TEXTS = [
    *SAMPLES.values(),
    *(text for texts in (*FURTHER.values(), *INNOCENT.values()) for text in texts),
    *PROSE.values(),
    MARKDOWN,
]
# Letters that are equal when case is ignored, all kinds of spaces, and word separators.
ODD = [
    "</ıdentity>",
    "</ſoul>",
    "\u2009",
    "\x1c",
    "\x0b",
    "\x85",
    "`",
    "'",
    "|",
    "é",
    "\ud800",
    "\x00",
    "?",
    "İ",
]


def missed(text, rules=SCAN_RULES):
    """List the rules that match although the prefilter skips them."""
    features = extract_text_features(text)
    applicable = [rule for rule in rules if rule.needs in features.names and rule.may_find(features)]
    return [rule.name for rule in rules if rule not in applicable and any(islice(rule.find(text), 1))]


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_a_glance_misses_nothing(text):
    assert missed(text) == []
    assert missed(f"{BODY}{text}{BODY}") == []


@given(st.lists(st.sampled_from([*TEXTS, *ODD]) | st.text(max_size=5), max_size=8), st.integers(0, 400))
@settings(max_examples=examples(40, hard=400), deadline=None)
def test_a_glance_misses_nothing_in_any_mixture(parts, cut):
    assert missed("".join(parts)) == []
    assert missed("".join(parts)[cut:]) == []


@pytest.mark.planted
@pytest.mark.parametrize("rule", SCAN_RULES, ids=lambda rule: rule.name)
def test_a_rule_that_waits_for_the_wrong_sight_would_be_noticed(rule):
    assert missed(SAMPLES[rule.name], [replace(rule, needs="never seen")]) == [rule.name]
    assert missed(SAMPLES[rule.name], [replace(rule, may_find=lambda features: False)]) == [rule.name]


def test_plain_prose_is_no_work_for_any_rule():
    features = extract_text_features("Ask for the order number before you look anything up.\n" * 100)
    assert features.names == {"text"}
    assert not [rule for rule in SCAN_RULES if rule.needs == "text"]


def test_in_ordinary_markdown_nearly_all_rules_are_spared():
    features = extract_text_features(BODY)
    applicable = [
        rule.name for rule in SCAN_RULES if rule.needs in features.names and rule.may_find(features)
    ]
    assert applicable == ["order-in-link-title"]
    assert scan_text(BODY) == ()


def test_a_long_word_is_one_that_could_hold_a_key():
    text = "é" + "a" * 20 + "`" + "b" * 19 + " x=" + "c.:+/=_-1" * 3 + "?\x00" + "d" * 25
    assert [text[start:end] for start, end in find_long_words(text)] == [
        "a" * 20,
        "x=" + "c.:+/=_-1" * 3,
        "d" * 25,
    ]


@pytest.mark.parametrize("shape", TOKEN_PATTERNS, ids=lambda shape: shape.name)
def test_every_key_of_one_word_is_a_long_word(shape):
    for text in [SAMPLES[f"secret-{shape.name}"], *FURTHER.get(f"secret-{shape.name}", [])]:
        assert any(needle in extract_text_features(text).long_words for needle in shape.needles)

"""Shortened texts end with a whole word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text.shorten import ELLIPSIS, shorten_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Greet people by name", "Greet people by name"),
        ("Greet people by name, please", "Greet people by…"),
        ("Greet people by name. Please do", "Greet people by…"),
        ("Greet people, kindly, please", "Greet people…"),
        # The space is the first character that does not fit.
        ("Greet the people at the door", "Greet the people at…"),
        # A word that is longer than half of the text is cut.
        ("Donaudampfschifffahrtsgesellschaft", "Donaudampfschifffah…"),
        ("日本語の長い文章はどこでも切ることができますよ", "日本語の長い文章はどこでも切ることがで…"),
    ],
)
def test_a_long_text_ends_with_a_whole_word(text, expected):
    assert shorten_text(text, 20) == expected


def test_accents_and_joined_emoji_stay_with_their_character():
    family = "👩\u200d👧\u200d👦"
    assert shorten_text("abcdefgh" + "e\u0301" * 9, 10) == "abcdefgh…"
    assert shorten_text(f"abcdefg{family}", 10) == "abcdefg…"


@given(st.text(st.sampled_from("ab \n,<é\u0301🙂\u200d")), st.integers(2, 12))
def test_a_shortened_text_is_a_beginning_of_the_text(text, length):
    shortened = shorten_text(text, length)
    if len(text) <= length:
        assert shortened == text
        return
    beginning = shortened.removesuffix(ELLIPSIS)
    assert len(shortened) <= length
    assert text.startswith(beginning)

"""Lists of names in sentences."""

import pytest

from core.text.lists import format_list, format_short_list


@pytest.mark.parametrize(
    ("names", "expected"),
    [([], ""), (["Fox"], "Fox"), (["Fox", "Mira"], "Fox and Mira"), (["A", "B", "C"], "A, B and C")],
)
def test_the_last_name_comes_after_and(names, expected):
    assert format_list(names) == format_short_list(names) == expected


def test_a_long_list_has_the_first_names_and_the_number_of_the_others():
    assert format_short_list(["A", "B", "C", "D"]) == "A, B, C and 1 more"
    assert format_short_list(["A", "B", "C", "D"], 2) == "A, B and 2 more"

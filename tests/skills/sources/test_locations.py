"""Paths on the bot's machine: check, join and compare them as text."""

import pytest

from skills.sources.locations import (
    find_location_problem,
    get_path_below,
    join_location,
    normalize_location,
)


@pytest.mark.parametrize("location", ["", "/", "/home/user", "/home/user/", "C:\\Users\\you", "d:/work"])
def test_absolute_paths_are_valid(location):
    assert find_location_problem(location) == ""


@pytest.mark.parametrize(
    "location",
    ["home", "~/x", "~", "./x", "/a/../b", "/a/./b", "C:x", "C:\\a\\..\\b", "/a\nb", "/a\\b", "\\\\host\\x"],
)
def test_other_paths_are_refused(location):
    assert find_location_problem(location)


def test_locations_are_normalized():
    assert normalize_location("/home//user/") == "/home/user"
    assert normalize_location("/") == "/"
    assert normalize_location("c:\\Users\\you\\") == "C:\\Users\\you"
    assert normalize_location("C:/") == "C:/"


def test_paths_are_joined_with_the_separator_of_the_location():
    assert join_location("/", "AGENTS.md") == "/AGENTS.md"
    assert join_location("/srv", "a/b", "", "c") == "/srv/a/b/c"
    assert join_location("C:\\x", "a/b") == "C:\\x\\a\\b"
    assert join_location("C:/", "a/b") == "C:/a/b"
    assert join_location("/srv") == "/srv"


def test_a_path_below_a_location_is_relative_to_it():
    assert get_path_below("/srv/app", "/srv/app/src/") == "src"
    assert get_path_below("/srv/app", "/srv/app") == ""
    assert get_path_below("/srv/app", "/srv/application") is None
    assert get_path_below("/", "/srv") == "srv"
    assert get_path_below("C:\\x", "c:/x/y/z") == "y/z"
    assert get_path_below("", "/srv") is None
    assert get_path_below("/srv", "srv/x") is None

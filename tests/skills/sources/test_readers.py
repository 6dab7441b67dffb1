"""The working directory of an agent below the root of its source, and what is reported if it is not."""

import pytest

from skills.models import Source, SourceGrant
from skills.sources.readers import locate_working_directory

FOLDER = Source(source_kind="folder", grant=SourceGrant(path="/srv/files"), folder="teams/red")
PUSHED = Source(source_kind="pushed")


@pytest.mark.parametrize(
    ("directory", "path"),
    [
        ("", ""),
        ("docs/deep", "docs/deep"),
        ("./docs/", "docs"),
        ("/srv/files/teams/red", ""),
        ("/srv/files/teams/red/docs/", "docs"),
    ],
)
def test_a_directory_below_the_folder_is_found(directory, path):
    assert locate_working_directory(directory, FOLDER) == (path, "")


@pytest.mark.parametrize(
    ("directory", "path"),
    [("docs", "docs"), ("/home/bot/work", ""), ("/home/bot/work/docs/deep/", "docs/deep")],
)
@pytest.mark.parametrize("source", [FOLDER, PUSHED])
@pytest.mark.parametrize("location", ["/home/bot/work", "/home/bot/work/"])
def test_a_directory_below_the_location_of_the_root_is_found(directory, path, source, location):
    assert locate_working_directory(directory, source, root_location=location) == (path, "")


def test_the_folder_of_the_workers_counts_besides_the_location_of_the_root():
    found = locate_working_directory("/srv/files/teams/red/docs", FOLDER, root_location="/home/bot")
    assert found == ("docs", "")


@pytest.mark.parametrize("directory", ["/srv/files/teams/redder", "/srv/files", "/", "/home/bot/work"])
def test_a_directory_outside_is_reported_with_the_root(directory):
    path, problem = locate_working_directory(directory, FOLDER)
    assert path == ""
    assert "/srv/files/teams/red" in problem
    assert directory in problem
    assert "working directory" in problem.lower()


def test_an_absolute_directory_of_pushed_files_is_reported():
    path, problem = locate_working_directory("/home/bot/work", PUSHED)
    assert (path, "/home/bot/work" in problem, "relative" in problem) == ("", True, True)


def test_a_directory_with_two_dots_is_reported():
    for directory in ("../other", "/srv/files/teams/red/../blue"):
        path, problem = locate_working_directory(directory, FOLDER)
        assert (path, ".." in problem) == ("", True)

"""The working directory of an agent below the roots of its sources, and what is reported if it is not."""

import pytest

from skills.discovery.harnesses import HARNESSES
from skills.models import AgentSource, AllowedFolder, Source, SourceScope
from skills.sources.folders import map_directory

FOLDER = Source(source_kind="folder", allowed_folder=AllowedFolder(path="/srv/files"), folder="teams/red")
PUSHED = Source(source_kind="pushed")


def locate(directory: str, source: Source, location: str = "") -> tuple[str | None, str]:
    use = AgentSource(source=source, scope=SourceScope.BOTH, location=location)
    mapped = map_directory(directory, [use], HARNESSES["opal"])
    return mapped.relative[0], mapped.problem


@pytest.mark.parametrize(
    ("directory", "path"),
    [
        ("", ""),
        ("docs/deep", "docs/deep"),
        ("/srv/files/teams/red", ""),
        ("/srv/files/teams/red/docs/", "docs"),
    ],
)
def test_a_directory_below_the_folder_is_found(directory, path):
    assert locate(directory, FOLDER) == (path, "")


@pytest.mark.parametrize(
    ("directory", "path"),
    [("docs", "docs"), ("/home/bot/app", ""), ("/home/bot/app/docs/deep/", "docs/deep")],
)
@pytest.mark.parametrize("source", [FOLDER, PUSHED])
def test_a_directory_below_the_location_of_the_root_is_found(directory, path, source):
    assert locate(directory, source, "/home/bot/app") == (path, "")


def test_the_folder_of_the_workers_counts_besides_the_location_of_the_root():
    assert locate("/srv/files/teams/red/docs", FOLDER, "/home/bot") == ("docs", "")


@pytest.mark.parametrize("directory", ["/srv/files/teams/redder", "/srv/files", "/", "/home/bot/app"])
def test_a_directory_outside_is_reported_with_the_root(directory):
    path, problem = locate(directory, FOLDER)
    assert path == ""
    assert "/srv/files/teams/red" in problem
    assert directory in problem


def test_an_absolute_directory_of_pushed_files_is_reported():
    path, problem = locate("/home/bot/app", PUSHED)
    assert (path, "/home/bot/app" in problem, "relative" in problem) == ("", True, True)


@pytest.mark.parametrize("directory", ["../other", "/srv/files/teams/red/../blue"])
def test_a_directory_with_two_dots_is_reported(directory):
    path, problem = locate(directory, FOLDER)
    assert (path, ".." in problem) == ("", True)

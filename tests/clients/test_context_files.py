"""A project's context files: those that agents read, within bounds, and no link followed."""

import os

import pytest

from dramatis_client import context_files, context_names
from dramatis_client.context_files import TooMuch, find_context_files
from dramatis_client.context_names import FILES, PERSONAL
from skills.discovery.harnesses import HARNESSES, HOME_PREFIX


def write(folder, *paths, text="Be kind.\n"):
    for path in paths:
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def found_in(folder, **options):
    return find_context_files(folder, **options)


def test_every_path_that_a_rule_of_the_server_names_is_found(tmp_path):
    rules = [rule for harness in HARNESSES.values() for rule in harness.rules]
    named = {path.removeprefix(HOME_PREFIX).replace("*", "tea") for rule in rules for path in rule.paths}
    write(tmp_path, *named)
    write(tmp_path, *[f"crew/{path}" for path in named])
    both = named | {f"crew/{path}" for path in named}
    assert set(found_in(tmp_path, with_personal=True).files) == both


def test_nothing_else_is_taken(tmp_path):
    write(tmp_path, "README.md", ".env", "src/agents.md", "AGENTS.md.bak", ".agents/skills/tea/notes.md")
    write(tmp_path, ".git/AGENTS.md", "node_modules/x/AGENTS.md", ".venv/AGENTS.md", ".ssh/AGENTS.md")
    write(tmp_path, ".agents/skills/.hidden/SKILL.md", "SKILL.md", "AGENTS.md")
    assert list(found_in(tmp_path).files) == ["AGENTS.md"]


def test_personal_files_only_when_asked_for(tmp_path):
    write(tmp_path, "CLAUDE.md", *PERSONAL)
    assert list(found_in(tmp_path).files) == ["CLAUDE.md"]
    assert set(found_in(tmp_path, with_personal=True).files) == {"CLAUDE.md", *PERSONAL}


def test_the_order_is_always_the_same(tmp_path):
    write(tmp_path, "b/AGENTS.md", "a/AGENTS.md", "SOUL.md", "AGENTS.md")
    assert list(found_in(tmp_path).files) == ["AGENTS.md", "SOUL.md", "a/AGENTS.md", "b/AGENTS.md"]


def test_links_are_named_and_not_followed(tmp_path):
    write(tmp_path, "outside/SOUL.md", "outside/AGENTS.md", "project/USER.md")
    project = tmp_path / "project"
    (project / "SOUL.md").symlink_to(tmp_path / "outside" / "SOUL.md")
    (project / "docs").symlink_to(tmp_path / "outside")
    found = found_in(project)
    assert list(found.files) == ["USER.md"]
    assert set(found.skipped) == {"SOUL.md", "docs"}
    assert not found.is_complete


@pytest.mark.parametrize("content", [b"\xff\xfe", b"\xc3\x28", b"x" * 1_000_001])
def test_what_cannot_be_sent_is_said(content, tmp_path):
    (tmp_path / "AGENTS.md").write_bytes(content)
    assert set(found_in(tmp_path).skipped) == {"AGENTS.md"}


def test_pipes_and_folders_in_a_files_place_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "AGENTS.md")
    (tmp_path / "SOUL.md").mkdir()
    found = found_in(tmp_path)
    assert (found.files, set(found.skipped)) == ({}, {"AGENTS.md"})


def test_more_than_a_push_may_hold_is_refused_as_a_whole(tmp_path, monkeypatch):
    write(tmp_path, *[f"{number}/AGENTS.md" for number in range(200)])
    assert len(found_in(tmp_path).files) == 200
    write(tmp_path, "one-more/AGENTS.md")
    with pytest.raises(TooMuch, match="200"):
        found_in(tmp_path)
    monkeypatch.setattr(context_files, "MOST_ENTRIES", 100)
    with pytest.raises(TooMuch, match="100 files and folders"):
        found_in(tmp_path)


def test_bytes_are_counted_as_they_travel(tmp_path):
    write(tmp_path, "AGENTS.md", text='"' * 499_000)
    assert found_in(tmp_path).is_complete
    write(tmp_path, "AGENTS.md", text='"' * 500_000)
    with pytest.raises(TooMuch, match="bytes"):
        found_in(tmp_path)


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(NotADirectoryError):
        found_in(tmp_path / "nowhere")


@pytest.mark.planted
def test_a_name_that_is_forgotten_is_noticed(tmp_path, monkeypatch):
    fewer = tuple(name for name in FILES if name != "SOUL.md")
    monkeypatch.setattr(context_names, "_PERSONAL", context_names._shape((*fewer, *PERSONAL)))
    with pytest.raises(AssertionError):
        test_every_path_that_a_rule_of_the_server_names_is_found(tmp_path)

"""Context file search: finds the files that agents read, within size limits, and follows no links."""

import os

import pytest

from dramatis_client import context_files, context_names
from dramatis_client.context_files import PushTooLarge, find_context_files
from dramatis_client.context_names import FILES, PERSONAL
from skills.discovery.harnesses import HARNESSES, HOME_PREFIX


def write(folder, *paths, text="Be kind.\n"):
    for path in paths:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def test_every_path_that_a_rule_of_the_server_names_is_found(tmp_path):
    rules = [rule for harness in HARNESSES.values() for rule in harness.rules]
    rule_paths = {path.removeprefix(HOME_PREFIX).replace("*", "tea") for rule in rules for path in rule.paths}
    write(tmp_path, *rule_paths)
    write(tmp_path, *[f"crew/{path}" for path in rule_paths])
    expected = rule_paths | {f"crew/{path}" for path in rule_paths}
    assert set(find_context_files(tmp_path, with_personal=True).files) == expected


def test_other_files_are_not_found(tmp_path):
    write(tmp_path, "README.md", ".env", "src/agents.md", "AGENTS.md.bak", ".agents/skills/tea/notes.md")
    write(tmp_path, ".git/AGENTS.md", "node_modules/x/AGENTS.md", ".venv/AGENTS.md", ".ssh/AGENTS.md")
    write(tmp_path, ".agents/skills/.hidden/SKILL.md", "SKILL.md", "AGENTS.md")
    assert list(find_context_files(tmp_path).files) == ["AGENTS.md"]


def test_personal_files_are_found_only_on_request(tmp_path):
    write(tmp_path, "CLAUDE.md", *PERSONAL)
    assert list(find_context_files(tmp_path).files) == ["CLAUDE.md"]
    assert set(find_context_files(tmp_path, with_personal=True).files) == {"CLAUDE.md", *PERSONAL}


def test_the_order_is_always_the_same(tmp_path):
    write(tmp_path, "b/AGENTS.md", "a/AGENTS.md", "SOUL.md", "AGENTS.md")
    assert list(find_context_files(tmp_path).files) == ["AGENTS.md", "SOUL.md", "a/AGENTS.md", "b/AGENTS.md"]


def test_links_are_listed_as_skipped_and_not_followed(tmp_path):
    write(tmp_path, "outside/SOUL.md", "outside/AGENTS.md", "project/USER.md")
    project = tmp_path / "project"
    (project / "SOUL.md").symlink_to(tmp_path / "outside" / "SOUL.md")
    (project / "docs").symlink_to(tmp_path / "outside")
    context = find_context_files(project)
    assert list(context.files) == ["USER.md"]
    assert set(context.skipped) == {"SOUL.md", "docs"}
    assert not context.is_complete


@pytest.mark.parametrize("content", [b"\xff\xfe", b"\xc3\x28", b"x" * 1_000_001])
def test_files_that_cannot_be_sent_are_listed_as_skipped(content, tmp_path):
    (tmp_path / "AGENTS.md").write_bytes(content)
    assert set(find_context_files(tmp_path).skipped) == {"AGENTS.md"}


def test_pipes_and_folders_with_a_file_name_are_not_read(tmp_path):
    os.mkfifo(tmp_path / "AGENTS.md")
    (tmp_path / "SOUL.md").mkdir()
    context = find_context_files(tmp_path)
    assert (context.files, set(context.skipped)) == ({}, {"AGENTS.md"})


def test_a_project_over_the_limits_is_rejected(tmp_path, monkeypatch):
    write(tmp_path, *[f"{number}/AGENTS.md" for number in range(200)])
    assert len(find_context_files(tmp_path).files) == 200
    write(tmp_path, "one-more/AGENTS.md")
    with pytest.raises(PushTooLarge, match="200"):
        find_context_files(tmp_path)
    monkeypatch.setattr(context_files, "MAX_ENTRIES", 100)
    with pytest.raises(PushTooLarge, match="100 files and folders"):
        find_context_files(tmp_path)


def test_bytes_are_counted_as_json(tmp_path):
    write(tmp_path, "AGENTS.md", text='"' * 499_000)
    assert find_context_files(tmp_path).is_complete
    write(tmp_path, "AGENTS.md", text='"' * 500_000)
    with pytest.raises(PushTooLarge, match="bytes"):
        find_context_files(tmp_path)


def test_a_missing_folder_is_rejected(tmp_path):
    with pytest.raises(NotADirectoryError):
        find_context_files(tmp_path / "nowhere")


@pytest.mark.planted
def test_a_missing_file_name_is_detected(tmp_path, monkeypatch):
    fewer = tuple(name for name in FILES if name != "SOUL.md")
    monkeypatch.setattr(
        context_names, "_PERSONAL_PATTERN", context_names._compile_patterns((*fewer, *PERSONAL))
    )
    with pytest.raises(AssertionError):
        test_every_path_that_a_rule_of_the_server_names_is_found(tmp_path)

"""The files of the journal: chained, signed, durable, and refused when they were changed."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from project.journal import files
from project.journal.files import (
    HEAD_FILE,
    JOURNAL_FILE,
    OVERLAP,
    Ending,
    FoundEndings,
    JournalError,
    append_endings,
    read_journal,
)
from prompts.evidence.integrity.checkpoint_signer import load_signing_key
from prompts.proof.canonical import format_timestamp
from prompts.proof.signatures import sign_body
from prompts.proof.signing_keys import dump_private_key, generate_signing_key

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def make_ending(number: int, at: datetime = NOW) -> Ending:
    return {
        "kind": "key_revoked",
        "workspace": 1,
        "id": number,
        "at": format_timestamp(at),
        "digest": "d" * 64,
    }


def append(folder: Path, *numbers: int, now: datetime = NOW, is_complete: bool = True) -> int:
    endings = [make_ending(number) for number in numbers]
    count, _head = append_endings(
        folder, lambda since: FoundEndings(endings, is_complete), key=load_signing_key(), now=now
    )
    return count


def list_ids(folder: Path) -> list[int]:
    journal = read_journal(folder)
    assert journal is not None
    return [ending["id"] for ending in journal.endings]


def test_endings_are_appended_once_in_their_order(tmp_path):
    assert read_journal(tmp_path) is None
    assert append(tmp_path, 1, 2) == 2
    assert append(tmp_path, 1, 2, 3) == 1
    assert append(tmp_path, 3) == 0
    journal = read_journal(tmp_path)
    assert journal is not None
    assert list_ids(tmp_path) == [1, 2, 3]
    assert journal.head.lines == 3
    assert journal.head.through_at == NOW
    assert journal.has_position(0, "")
    assert journal.has_position(3, journal.head.hash)
    assert not journal.has_position(2, journal.head.hash)
    assert not journal.has_position(4, journal.head.hash)


def test_files_are_for_their_owner_only(tmp_path):
    append(tmp_path, 1)
    assert [path.stat().st_mode & 0o077 for path in tmp_path.iterdir()] == [0, 0]


def test_a_run_reads_again_what_happened_shortly_before_the_last_one(tmp_path):
    asked = []

    def list_endings(since: datetime) -> FoundEndings:
        asked.append(since)
        return FoundEndings([])

    for now in (NOW, NOW + timedelta(minutes=1)):
        append_endings(tmp_path, list_endings, key=load_signing_key(), now=now)
    assert asked[0] < datetime(1970, 1, 3, tzinfo=UTC)
    assert asked[1] == NOW - OVERLAP


def test_lines_of_long_ago_are_not_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "TAIL_BYTES", 1_000)
    append(tmp_path, *range(100))
    append(tmp_path, *range(100, 110), now=NOW + timedelta(days=1))
    head = files.read_head(tmp_path)
    with (tmp_path / JOURNAL_FILE).open("rb") as file:
        lines = files.read_last_lines(file, head, head.through_at - OVERLAP)
    assert 10 < len(lines) < 60
    assert append(tmp_path, *range(100, 111), now=NOW + timedelta(days=1, minutes=1)) == 1
    assert list_ids(tmp_path) == [*range(111)]


def test_an_incomplete_run_does_not_count_as_one(tmp_path):
    append(tmp_path, 1)
    append(tmp_path, 2, now=NOW + timedelta(minutes=5), is_complete=False)
    journal = read_journal(tmp_path)
    assert journal is not None
    assert list_ids(tmp_path) == [1, 2]
    assert journal.head.through_at == NOW


def test_lines_that_a_crash_left_without_a_head_are_written_again(tmp_path):
    append(tmp_path, 1)
    head = (tmp_path / HEAD_FILE).read_bytes()
    append(tmp_path, 2)
    (tmp_path / HEAD_FILE).write_bytes(head)
    with (tmp_path / JOURNAL_FILE).open("ab") as file:
        file.write(b'{"half of a li')
    assert list_ids(tmp_path) == [1]
    assert append(tmp_path, 2, 3) == 2
    assert list_ids(tmp_path) == [1, 2, 3]


# --- changed journals ----------------------------------------------------------------------------------


def change_line(folder: Path) -> None:
    text = (folder / JOURNAL_FILE).read_text()
    (folder / JOURNAL_FILE).write_text(text.replace('"id":2', '"id":9'))


def remove_line(folder: Path) -> None:
    lines = (folder / JOURNAL_FILE).read_text().splitlines(keepends=True)
    (folder / JOURNAL_FILE).write_text("".join([lines[0], *lines[2:]]))


def cut_off(folder: Path) -> None:
    lines = (folder / JOURNAL_FILE).read_text().splitlines(keepends=True)
    (folder / JOURNAL_FILE).write_text("".join(lines[:2]))


def change_head(folder: Path) -> None:
    data = json.loads((folder / HEAD_FILE).read_text())
    data["head"]["through"] = format_timestamp(NOW + timedelta(days=9))
    (folder / HEAD_FILE).write_text(json.dumps(data))


def spoil_head(folder: Path) -> None:
    (folder / HEAD_FILE).write_text("{}")


def generate_signing_key_of_attacker(folder: Path):
    """Return a foreign key, with an empty journal that it signed."""
    key = generate_signing_key()
    folder.mkdir()
    (folder / JOURNAL_FILE).touch()
    files.write_head(folder, files.JournalHead(0, 0, "", format_timestamp(NOW)), key)
    return key


def remove_head(folder: Path) -> None:
    (folder / HEAD_FILE).unlink()


def remove_journal(folder: Path) -> None:
    (folder / JOURNAL_FILE).unlink()


@pytest.mark.planted
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (change_line, "does not follow the line before"),
        (remove_line, "shorter than stated in its head"),
        (cut_off, "shorter than stated in its head"),
        (change_head, "signature of endings.head is not valid"),
        (spoil_head, "cannot be read"),
        (remove_head, "endings.head is missing"),
        (remove_journal, "endings.journal is missing"),
    ],
)
def test_a_changed_journal_is_neither_read_nor_continued(tmp_path, change, message):
    append(tmp_path, 1, 2, 3)
    change(tmp_path)
    with pytest.raises(JournalError, match=message):
        read_journal(tmp_path)
    with pytest.raises(JournalError):
        append(tmp_path, 4)


@pytest.mark.planted
def test_a_line_replaced_by_one_of_the_same_length_is_found(tmp_path):
    append(tmp_path, 1, 2, 3)
    text = (tmp_path / JOURNAL_FILE).read_text()
    (tmp_path / JOURNAL_FILE).write_text(text.replace('"id":3', '"id":7'))
    with pytest.raises(JournalError, match="does not match its head"):
        read_journal(tmp_path)


@pytest.mark.planted
def test_a_journal_signed_with_an_unknown_key_is_refused(tmp_path):
    folder = tmp_path / "foreign"
    generate_signing_key_of_attacker(folder)
    with pytest.raises(JournalError, match="not one of the trusted keys"):
        read_journal(folder)


def test_after_a_key_rotation_the_journal_is_continued(tmp_path, settings):
    append(tmp_path, 1)
    old = files.read_head(tmp_path)
    old_key = json.loads((tmp_path / HEAD_FILE).read_text())["signature"]["key"]
    path = tmp_path / "new.pem"
    path.write_bytes(dump_private_key(generate_signing_key()))
    settings.DRAMATIS_SIGNING_KEY = str(path)
    new_key = sign_body("x", {}, load_signing_key()).key
    settings.DRAMATIS_TRUSTED_KEYS = f"{old_key} {new_key}"
    append(tmp_path, 2)
    assert files.read_head(tmp_path).lines == old.lines + 1
    assert json.loads((tmp_path / HEAD_FILE).read_text())["signature"]["key"] == new_key

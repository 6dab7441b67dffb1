"""The last good copy on disk: there when the server is not, for its owner alone, and never a spoilt one."""

import os
import random
import stat

import pytest

from dramatis_client import Unreachable
from dramatis_client.copies import Name
from dramatis_client.disk import CopyFiles
from tests.clients.drivers import KEY
from tests.clients.standing import etag_of, prompt_said, unchanged

DECK = Name("pilot", "deck", "production")


@pytest.fixture
def folder(stand_in, make_client, tmp_path):
    """With one kept prompt in it."""
    stand_in.says(prompt_said("Be brave."))
    make_client(stand_in.url, cache_dir=tmp_path / "kept").prompt()
    return tmp_path / "kept"


def kept_file(folder):
    [path] = folder.rglob("*.json")
    return path


def test_a_new_client_has_the_copy_when_the_server_is_away(folder, stand_in, make_client):
    stand_in.stop()
    prompt = make_client(stand_in.url, cache_dir=folder).prompt()
    assert (prompt.text, prompt.version, prompt.ledger_id) == ("Be brave.", 1, 41)


def test_a_new_client_asks_the_server_first_and_need_not_load_the_words(folder, stand_in, make_client):
    stand_in.says(unchanged("Be brave."))
    assert make_client(stand_in.url, cache_dir=folder).prompt().text == "Be brave."
    assert stand_in.heard[-1].headers["if-none-match"] == etag_of("Be brave.")


def test_the_file_is_its_owners_alone_and_nothing_is_left_beside_it(folder):
    path = kept_file(folder)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_neither_key_nor_address_stand_in_the_file_or_its_name(folder):
    path = kept_file(folder)
    assert KEY not in path.read_text() + str(path)
    assert "127.0.0.1" not in path.read_text()


def test_a_newer_version_takes_the_place_of_the_older(folder, stand_in, make_client):
    stand_in.says(prompt_said("Be bold.", 2))
    make_client(stand_in.url, cache_dir=folder).prompt()
    stand_in.stop()
    assert make_client(stand_in.url, cache_dir=folder).prompt().text == "Be bold."


def test_no_spoilt_byte_goes_unnoticed(folder, stand_in):
    path = kept_file(folder)
    files, whole = CopyFiles(folder, stand_in.url, KEY), path.read_bytes()
    assert files.read(DECK) is not None
    chosen = random.Random(7)  # noqa: S311  # the same bytes in every run
    for _ in range(200):
        spoilt = bytearray(whole)
        spoilt[chosen.randrange(len(whole))] ^= 1 << chosen.randrange(8)
        path.write_bytes(spoilt)
        held = files.read(DECK)
        # Where a space is written another way the words are the same still.
        assert held is None or held.prompt.text == "Be brave.", bytes(spoilt)
    for size in range(0, len(whole), 17):
        path.write_bytes(whole[:size])
        assert files.read(DECK) is None


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"[]\n{}", b"null\n", b"\xff\n", b"{" * 100_000, b'{"format":1}\n{}']
)
def test_a_file_of_anything_else_is_no_copy(content, folder, stand_in, make_client, without_waiting):
    kept_file(folder).write_bytes(content)
    stand_in.stop()
    with pytest.raises(Unreachable):
        make_client(stand_in.url, cache_dir=folder).prompt()


def test_one_prompts_file_is_not_taken_for_anothers(folder, stand_in):
    files = CopyFiles(folder, stand_in.url, KEY)
    files.path(DECK).rename(files.path(DECK._replace(channel="mast")))
    assert files.read(DECK._replace(channel="mast")) is None


def test_another_key_neither_finds_nor_believes_it(folder, stand_in):
    path, other = kept_file(folder), CopyFiles(folder, stand_in.url, KEY.replace("k", "l"))
    assert other.read(DECK) is None
    other.folder.mkdir()
    other.path(DECK).write_bytes(path.read_bytes())
    assert other.read(DECK) is None


def test_a_link_is_not_followed(folder, stand_in, tmp_path):
    path = kept_file(folder)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert CopyFiles(folder, stand_in.url, KEY).read(DECK) is None


def test_a_disk_that_takes_nothing_withholds_nothing(stand_in, make_client, tmp_path, caplog):
    (tmp_path / "file").write_text("")
    stand_in.says(prompt_said("Be brave."))
    assert make_client(stand_in.url, cache_dir=tmp_path / "file").prompt().text == "Be brave."
    assert "cannot be kept on disk" in caplog.text


def test_a_write_that_breaks_off_leaves_the_last_copy(folder, stand_in, make_client, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    stand_in.says(prompt_said("Be bold.", 2))
    assert make_client(stand_in.url, cache_dir=folder).prompt().text == "Be bold."
    held = CopyFiles(folder, stand_in.url, KEY).read(DECK)
    assert held is not None
    assert held.prompt.text == "Be brave."
    assert len(list(kept_file(folder).parent.iterdir())) == 1


@pytest.mark.planted
def test_copies_without_a_seal_would_be_noticed(folder, stand_in, monkeypatch):
    monkeypatch.setattr("dramatis_client.disk.hmac.compare_digest", lambda *_: True)
    with pytest.raises(AssertionError):
        test_one_prompts_file_is_not_taken_for_anothers(folder, stand_in)

"""The disk cache works while the server is unavailable, is private to its owner and rejects corrupt files."""

import os
import random
import stat

import pytest

from dramatis_client import Unreachable
from dramatis_client.cache_entries import PromptKey
from dramatis_client.disk_cache import DiskCache
from tests.clients.drivers import KEY
from tests.clients.stub_server import make_etag, not_modified_response, prompt_response

DECK = PromptKey("pilot", "deck", "production")


@pytest.fixture
def folder(stub_server, make_client, tmp_path):
    """A cache folder with one cached prompt."""
    stub_server.respond_with(prompt_response("Be brave."))
    make_client(stub_server.url, cache_dir=tmp_path / "kept").prompt()
    return tmp_path / "kept"


def get_cache_file(folder):
    [path] = folder.rglob("*.json")
    return path


def test_a_new_client_uses_the_cached_copy_when_the_server_is_unavailable(folder, stub_server, make_client):
    stub_server.stop()
    prompt = make_client(stub_server.url, cache_dir=folder).prompt()
    assert (prompt.text, prompt.version, prompt.ledger_id) == ("Be brave.", 1, 41)


def test_a_new_client_revalidates_with_the_server_first(folder, stub_server, make_client):
    stub_server.respond_with(not_modified_response("Be brave."))
    assert make_client(stub_server.url, cache_dir=folder).prompt().text == "Be brave."
    assert stub_server.requests[-1].headers["if-none-match"] == make_etag("Be brave.")


def test_only_the_owner_can_read_the_file_and_no_temporary_file_remains(folder):
    path = get_cache_file(folder)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_neither_key_nor_address_is_in_the_file_or_its_name(folder):
    path = get_cache_file(folder)
    assert KEY not in path.read_text() + str(path)
    assert "127.0.0.1" not in path.read_text()


def test_a_newer_version_replaces_the_older(folder, stub_server, make_client):
    stub_server.respond_with(prompt_response("Be bold.", 2))
    make_client(stub_server.url, cache_dir=folder).prompt()
    stub_server.stop()
    assert make_client(stub_server.url, cache_dir=folder).prompt().text == "Be bold."


@pytest.mark.slow
def test_every_corrupt_byte_is_detected(folder, stub_server):
    path = get_cache_file(folder)
    cache, original = DiskCache(folder, stub_server.url, KEY), path.read_bytes()
    assert cache.read(DECK) is not None
    rng = random.Random(7)  # noqa: S311  # the same bytes in every run
    for _ in range(200):
        corrupt = bytearray(original)
        corrupt[rng.randrange(len(original))] ^= 1 << rng.randrange(8)
        path.write_bytes(corrupt)
        entry = cache.read(DECK)
        # A changed byte in the whitespace of the header leaves the prompt the same.
        assert entry is None or entry.prompt.text == "Be brave.", bytes(corrupt)
    for size in range(0, len(original), 17):
        path.write_bytes(original[:size])
        assert cache.read(DECK) is None


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"[]\n{}", b"null\n", b"\xff\n", b"{" * 100_000, b'{"format":1}\n{}']
)
def test_a_file_with_other_content_is_ignored(content, folder, stub_server, make_client, short_delays):
    get_cache_file(folder).write_bytes(content)
    stub_server.stop()
    with pytest.raises(Unreachable):
        make_client(stub_server.url, cache_dir=folder).prompt()


def test_a_file_of_another_prompt_is_rejected(folder, stub_server):
    cache = DiskCache(folder, stub_server.url, KEY)
    cache.path(DECK).rename(cache.path(DECK._replace(channel="mast")))
    assert cache.read(DECK._replace(channel="mast")) is None


def test_another_key_neither_finds_nor_accepts_the_file(folder, stub_server):
    path, other = get_cache_file(folder), DiskCache(folder, stub_server.url, KEY.replace("k", "l"))
    assert other.read(DECK) is None
    other.folder.mkdir()
    other.path(DECK).write_bytes(path.read_bytes())
    assert other.read(DECK) is None


def test_a_link_is_not_followed(folder, stub_server, tmp_path):
    path = get_cache_file(folder)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert DiskCache(folder, stub_server.url, KEY).read(DECK) is None


def test_a_disk_error_does_not_withhold_the_prompt(stub_server, make_client, tmp_path, caplog):
    (tmp_path / "file").write_text("")
    stub_server.respond_with(prompt_response("Be brave."))
    assert make_client(stub_server.url, cache_dir=tmp_path / "file").prompt().text == "Be brave."
    assert "could not be cached" in caplog.text


def test_a_failed_write_leaves_the_last_copy(folder, stub_server, make_client, monkeypatch):
    def raise_disk_full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", raise_disk_full)
    stub_server.respond_with(prompt_response("Be bold.", 2))
    assert make_client(stub_server.url, cache_dir=folder).prompt().text == "Be bold."
    entry = DiskCache(folder, stub_server.url, KEY).read(DECK)
    assert entry is not None
    assert entry.prompt.text == "Be brave."
    assert len(list(get_cache_file(folder).parent.iterdir())) == 1


@pytest.mark.planted
def test_a_missing_signature_check_would_be_detected(folder, stub_server, monkeypatch):
    monkeypatch.setattr("dramatis_client.disk_cache.hmac.compare_digest", lambda *_: True)
    with pytest.raises(AssertionError):
        test_a_file_of_another_prompt_is_rejected(folder, stub_server)

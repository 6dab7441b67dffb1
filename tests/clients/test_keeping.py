"""A prompt once had is never missed: memory first, the server behind, and what takes a copy away."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dramatis_client import Problem, Unreachable
from dramatis_client.keeping import Keeper
from tests.clients.drivers import Blocking, Driver, Make, at
from tests.clients.standing import (
    Heard,
    Said,
    StandIn,
    digest_of,
    etag_of,
    problem_said,
    prompt_said,
    unchanged,
)

HTML = {"Content-Type": "text/html"}
# Whatever is between us and the server may say these, and the server itself the first ones.
AWAY = {
    "too many": problem_said(429, "rate_limited", Retry_After="2"),
    "down": problem_said(503, "unavailable", Retry_After="2"),
    "broken": problem_said(500, "server_error"),
    "not fitting": problem_said(422, "invalid"),
    "gateway": Said(502, b"<h1>Bad gateway</h1>", HTML),
    "gateway in time": Said(504, b"", HTML),
    "not found, says the proxy": Said(404, b"<h1>default backend</h1>", HTML),
    "log in, says the proxy": Said(401, b"<h1>Log in</h1>", HTML),
    "gone, says the proxy": Said(410, b'{"code":"erased"}', {"Content-Type": "application/json"}),
    "elsewhere": Said(302, b"", {"Location": "http://127.0.0.1:9/"}),
    "a page": Said(200, b"<h1>Welcome</h1>", HTML),
    "a list": Said(200, b"[]", {"Content-Type": "application/json"}),
    "half a prompt": Said(200, prompt_said("Be bold.").body[:-40], {"Content-Type": "application/json"}),
    "other words": prompt_said("Be bold.", served_digest=digest_of("Be brave.")),
    "no text": prompt_said("Be bold.", text=None),
    "deep": Said(200, b"[" * 100_000, {"Content-Type": "application/json"}),
    "unchanged, but what": Said(304, headers={"ETag": 'W/"somebody else"'}),
    "hangs up": None,
}
FINAL = {401: "bad_key", 403: "out_of_scope", 404: "not_found", 410: "erased"}


def with_a_copy(stand_in: StandIn, make_client: Make, **options: object) -> Driver:
    stand_in.says(prompt_said("Be brave."))
    client = make_client(stand_in.url, **options)
    at(client, 1_000)
    assert client.prompt().text == "Be brave."
    return client


def test_a_prompt_is_read_whole(stand_in, make_client):
    stand_in.says(prompt_said("Be brave."))
    prompt = make_client(stand_in.url).prompt()
    assert (prompt.version, prompt.ledger_id, prompt.etag) == (1, 41, etag_of("Be brave."))
    assert (prompt.agent, prompt.channel, prompt.label) == ("pilot", "deck", "production")
    assert prompt.blocks == ("Be ", "brave.")
    assert "".join(prompt.blocks) == prompt.text
    assert prompt.segments[0].section == "soul"
    assert not prompt.is_stale
    assert stand_in.heard[0].path == "/api/v1/agents/pilot/prompt?channel=deck&label=production"
    assert stand_in.heard[0].headers["authorization"].startswith("Bearer drm_bot_")


def test_for_half_a_minute_nobody_asks_again(stand_in, make_client):
    client = with_a_copy(stand_in, make_client)
    at(client, 1_029.9)
    assert not client.prompt().is_stale
    assert len(stand_in.heard) == 1


def test_then_the_copy_is_given_at_once_and_the_new_one_is_there_next_time(stand_in, make_client):
    client = with_a_copy(stand_in, make_client)
    stand_in.says(prompt_said("Be bold.", 2))
    at(client, 1_031)
    old = client.prompt()
    assert (old.text, old.is_stale) == ("Be brave.", True)
    client.settle()
    new = client.prompt()
    assert (new.text, new.version, new.is_stale) == ("Be bold.", 2, False)
    assert len(stand_in.heard) == 2


def test_many_threads_make_one_refresh_and_none_of_them_waits(stand_in):
    may_answer = threading.Event()
    client = Blocking(stand_in.url)
    stand_in.says(prompt_said("Be brave."))
    at(client, 1_000)
    client.prompt()

    def slowly(heard: Heard) -> Said:
        may_answer.wait(10)
        return unchanged("Be brave.")

    stand_in.reply = slowly
    at(client, 1_031)
    begun = time.monotonic()
    with ThreadPoolExecutor(20) as pool:
        texts = set(pool.map(lambda _: client.prompt().text, range(200)))
    assert texts == {"Be brave."}
    assert time.monotonic() - begun < 5
    may_answer.set()
    client.settle()
    assert len(stand_in.heard) == 2
    client.close()


def test_who_was_long_away_waits_for_the_new_words(stand_in, make_client):
    client = with_a_copy(stand_in, make_client)
    stand_in.says(prompt_said("Be bold.", 2))
    at(client, 1_331)
    assert client.prompt().text == "Be bold."


def test_a_clock_that_was_set_back_makes_nothing_fresh(stand_in, make_client):
    client = with_a_copy(stand_in, make_client)
    stand_in.says(prompt_said("Be bold.", 2))
    at(client, 500)
    assert client.prompt().text == "Be bold."


def test_unchanged_words_are_not_sent_again(stand_in, make_client):
    client = with_a_copy(stand_in, make_client)
    stand_in.says(unchanged("Be brave."))
    at(client, 2_000)
    again = client.prompt()
    assert stand_in.heard[-1].headers["if-none-match"] == etag_of("Be brave.")
    assert (again.text, again.ledger_id, again.is_stale) == ("Be brave.", 41, False)
    assert again.fetched_at.timestamp() == 1_000


def test_a_label_that_is_rolled_back_finds_its_version_here(stand_in, make_client):
    client = with_a_copy(stand_in, make_client)
    stand_in.says(prompt_said("Be bold.", 2), unchanged("Be brave."))
    at(client, 2_000)
    assert client.prompt().text == "Be bold."
    at(client, 3_000)
    assert client.prompt().text == "Be brave."
    assert stand_in.heard[-1].headers["if-none-match"] == f"{etag_of('Be bold.')}, {etag_of('Be brave.')}"


def test_an_earlier_version_leaves_memory_within_an_hour(stand_in, make_client):
    client = with_a_copy(stand_in, make_client)
    stand_in.says(prompt_said("Be bold.", 2), unchanged("Be bold."))
    for later in (1_400, 4_000, 5_000):
        at(client, later)
        assert client.prompt().text == "Be bold."
    shelf = client.client._core.keeper.shelf
    assert [list(held) for held in shelf._earlier.values()] == [[]]
    assert len(stand_in.heard) == 4


def test_words_of_a_call_are_fetched_anew_after_an_hour(stand_in, make_client):
    clock = {
        "section": "time",
        "volatility": "turn",
        "range": [0, 9],
        "slot": "dramatis.time",
        "cacheable": False,
    }
    stand_in.says(prompt_said("It is ten", segments=[clock]))
    client = make_client(stand_in.url)
    at(client, 1_000)
    client.prompt()
    at(client, 4_599)
    client.prompt()
    assert "if-none-match" in stand_in.heard[-1].headers
    at(client, 1_000 + 2 * 3_600)
    client.prompt()
    assert "if-none-match" not in stand_in.heard[-1].headers


@pytest.mark.parametrize("why", AWAY)
def test_a_copy_is_used_whatever_else_is_answered(why, stand_in, make_client):
    client = with_a_copy(stand_in, make_client)
    stand_in.says(AWAY[why])
    at(client, 2_000)
    kept = client.prompt()
    assert (kept.text, kept.is_stale) == ("Be brave.", True)
    stand_in.says(prompt_said("Be bold.", 2))
    at(client, 2_061)
    client.prompt()
    client.settle()
    assert client.prompt().text == "Be bold."


def test_a_copy_is_used_when_nobody_listens_and_nobody_hammers(stand_in, make_client):
    client = with_a_copy(stand_in, make_client)
    stand_in.stop()
    at(client, 2_000)
    begun = time.monotonic()
    for _ in range(500):
        assert client.prompt().is_stale
    assert time.monotonic() - begun < 5
    stand_in.start()
    stand_in.says(prompt_said("Be bold.", 2))
    at(client, 2_004)
    assert client.prompt().text == "Be brave."
    assert len(stand_in.heard) == 1
    at(client, 2_006)
    client.prompt()
    client.settle()
    assert client.prompt().text == "Be bold."


def test_a_server_that_never_answers_is_waited_for_once(make_client, stand_in):
    client = with_a_copy(stand_in, make_client, timeout=0.3)
    stand_in.stop()
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        deaf.bind(("127.0.0.1", stand_in.port))
        deaf.listen(50)
        at(client, 2_000)
        begun = time.monotonic()
        assert client.prompt().is_stale
        assert 0.2 < time.monotonic() - begun < 3
        at(client, 2_100)
        begun = time.monotonic()
        assert client.prompt().is_stale
        assert time.monotonic() - begun < 0.2
        client.settle()


@pytest.mark.parametrize("status", FINAL)
def test_a_refusal_is_raised_and_the_copy_is_gone(status, stand_in, make_client, tmp_path, without_waiting):
    client = with_a_copy(stand_in, make_client, cache_dir=tmp_path)
    assert len(list(tmp_path.rglob("*.json"))) == 1
    stand_in.says(problem_said(status, FINAL[status]))
    at(client, 2_000)
    with pytest.raises(Problem) as raised:
        client.prompt()
    problem = raised.value
    assert (problem.status, problem.code, problem.request_id) == (status, FINAL[status], "req-7")
    assert problem.errors[0].pointer == "/text"
    assert not list(tmp_path.rglob("*.json"))
    stand_in.stop()
    with pytest.raises(Unreachable):
        client.prompt()


@pytest.mark.parametrize("status", FINAL)
def test_a_refusal_heard_behind_is_raised_at_the_next_call(status, stand_in, make_client):
    client = with_a_copy(stand_in, make_client)
    stand_in.says(problem_said(status, FINAL[status]))
    at(client, 1_031)
    assert client.prompt().is_stale
    client.settle()
    with pytest.raises(Problem, match=FINAL[status]):
        client.prompt()


def test_a_bad_key_loses_every_copy_and_another_refusal_one(stand_in, make_client, tmp_path, without_waiting):
    def by_channel(heard: Heard) -> Said:
        return prompt_said("Be brave.")

    stand_in.reply = by_channel
    client = make_client(stand_in.url, cache_dir=tmp_path)
    for channel in ("deck", "mast", "galley"):
        client.prompt("pilot", channel)
    at(client, time.time() + 1_000)
    stand_in.says(problem_said(410, "erased"))
    with pytest.raises(Problem):
        client.prompt("pilot", "deck")
    assert len(list(tmp_path.rglob("*.json"))) == 2
    stand_in.says(problem_said(401, "bad_key"))
    with pytest.raises(Problem):
        client.call("remember", "Likes tea.")
    assert not list(tmp_path.rglob("*.json"))
    stand_in.stop()
    with pytest.raises(Unreachable):
        client.prompt("pilot", "mast")


def test_a_failure_brings_no_copy_back_that_was_taken_away_meanwhile(stand_in, make_client):
    client = with_a_copy(stand_in, make_client)

    def taken_away(heard: Heard) -> None:
        client.client._core.keeper.shelf.forget_all()

    stand_in.reply = taken_away
    at(client, 2_000)
    with pytest.raises(Unreachable):
        client.prompt()


def test_without_a_copy_the_first_fetch_is_tried_again(stand_in, make_client, without_waiting):
    stand_in.says(None, Said(503), prompt_said("Be brave."))
    assert make_client(stand_in.url).prompt().text == "Be brave."
    assert len(stand_in.heard) == 3


@pytest.mark.planted
def test_a_keeper_that_gives_up_its_copy_is_noticed(stand_in, make_client, monkeypatch):
    def raised(self: Keeper, name: object, copy: object, error: Exception) -> None:
        raise error

    monkeypatch.setattr(Keeper, "kept_up", raised)
    with pytest.raises(Unreachable):
        test_a_copy_is_used_whatever_else_is_answered("hangs up", stand_in, make_client)


@pytest.mark.planted
def test_a_keeper_that_believes_in_proxies_is_noticed(stand_in, make_client, monkeypatch):
    monkeypatch.setattr("dramatis_client.keeping.is_final", lambda error: True)
    with pytest.raises(Unreachable):
        test_a_copy_is_used_whatever_else_is_answered("not found, says the proxy", stand_in, make_client)

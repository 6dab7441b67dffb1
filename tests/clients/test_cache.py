"""The prompt cache: stale-while-revalidate, stale-if-error, and which responses evict an entry."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dramatis_client import Block, Problem, Unreachable
from dramatis_client.cache import PromptCache
from tests.clients.drivers import BlockingDriver, ClientFactory, Driver, set_clock
from tests.clients.stub_server import (
    ReceivedRequest,
    StubResponse,
    StubServer,
    hash_text,
    make_etag,
    not_modified_response,
    problem_response,
    prompt_response,
)

HTML = {"Content-Type": "text/html"}
# Failures after which the cached copy is used: the server sends the first four, a proxy the others.
UNAVAILABLE = {
    "too many": problem_response(429, "rate_limited", Retry_After="2"),
    "down": problem_response(503, "unavailable", Retry_After="2"),
    "broken": problem_response(500, "server_error"),
    "not fitting": problem_response(422, "invalid"),
    "gateway": StubResponse(502, b"<h1>Bad gateway</h1>", HTML),
    "gateway in time": StubResponse(504, b"", HTML),
    "not found, says the proxy": StubResponse(404, b"<h1>default backend</h1>", HTML),
    "log in, says the proxy": StubResponse(401, b"<h1>Log in</h1>", HTML),
    "gone, says the proxy": StubResponse(410, b'{"code":"erased"}', {"Content-Type": "application/json"}),
    "elsewhere": StubResponse(302, b"", {"Location": "http://127.0.0.1:9/"}),
    "a page": StubResponse(200, b"<h1>Welcome</h1>", HTML),
    "a list": StubResponse(200, b"[]", {"Content-Type": "application/json"}),
    "half a prompt": StubResponse(
        200, prompt_response("Be bold.").body[:-40], {"Content-Type": "application/json"}
    ),
    "other words": prompt_response("Be bold.", served_digest=hash_text("Be brave.")),
    "no text": prompt_response("Be bold.", text=None),
    "other blocks": prompt_response("Be bold.", blocks=[]),
    "deep": StubResponse(200, b"[" * 100_000, {"Content-Type": "application/json"}),
    "unchanged, but what": StubResponse(304, headers={"ETag": 'W/"somebody else"'}),
    "hangs up": None,
}
FINAL = {401: "invalid_key", 403: "out_of_scope", 404: "not_found", 410: "erased"}


def make_client_with_copy(stub_server: StubServer, make_client: ClientFactory, **options: object) -> Driver:
    stub_server.respond_with(prompt_response("Be brave."))
    client = make_client(stub_server.url, **options)
    set_clock(client, 1_000)
    assert client.prompt().text == "Be brave."
    return client


def test_all_fields_of_a_prompt_are_parsed(stub_server, make_client):
    stub_server.respond_with(prompt_response("Be brave."))
    prompt = make_client(stub_server.url).prompt()
    assert (prompt.version, prompt.ledger_id, prompt.etag) == (1, 41, make_etag("Be brave."))
    assert (prompt.agent, prompt.channel, prompt.label) == ("pilot", "deck", "production")
    assert prompt.blocks == (Block("Be ", "release", True), Block("brave.", "turn", False))
    assert "".join([block.text for block in prompt.blocks]) == prompt.text
    assert prompt.segments[0].section == "soul"
    assert not prompt.is_stale
    assert stub_server.requests[0].path == "/api/v1/agents/pilot/channels/deck/prompt?label=production"
    assert stub_server.requests[0].headers["authorization"].startswith("Bearer drm_bot_")


def test_a_fresh_copy_is_served_without_a_request(stub_server, make_client):
    client = make_client_with_copy(stub_server, make_client)
    set_clock(client, 1_029.9)
    assert not client.prompt().is_stale
    assert len(stub_server.requests) == 1


def test_a_stale_copy_is_served_at_once_and_refreshed_for_the_next_call(stub_server, make_client):
    client = make_client_with_copy(stub_server, make_client)
    stub_server.respond_with(prompt_response("Be bold.", 2))
    set_clock(client, 1_031)
    old = client.prompt()
    assert (old.text, old.is_stale) == ("Be brave.", True)
    client.wait_for_refreshes()
    new = client.prompt()
    assert (new.text, new.version, new.is_stale) == ("Be bold.", 2, False)
    assert len(stub_server.requests) == 2


def test_many_threads_make_one_refresh_and_none_of_them_waits(stub_server):
    may_answer = threading.Event()
    client = BlockingDriver(stub_server.url)
    stub_server.respond_with(prompt_response("Be brave."))
    set_clock(client, 1_000)
    client.prompt()

    def reply_slowly(request: ReceivedRequest) -> StubResponse:
        may_answer.wait(60)
        return not_modified_response("Be brave.")

    stub_server.reply = reply_slowly
    set_clock(client, 1_031)
    started_at = time.monotonic()
    with ThreadPoolExecutor(20) as pool:
        texts = set(pool.map(lambda _: client.prompt().text, range(200)))
    assert texts == {"Be brave."}
    assert time.monotonic() - started_at < 30
    may_answer.set()
    client.wait_for_refreshes()
    assert len(stub_server.requests) == 2
    client.close()


def test_an_old_copy_waits_for_the_server(stub_server, make_client):
    client = make_client_with_copy(stub_server, make_client)
    stub_server.respond_with(prompt_response("Be bold.", 2))
    set_clock(client, 1_331)
    assert client.prompt().text == "Be bold."


def test_a_clock_that_was_set_back_makes_nothing_fresh(stub_server, make_client):
    client = make_client_with_copy(stub_server, make_client)
    stub_server.respond_with(prompt_response("Be bold.", 2))
    set_clock(client, 500)
    assert client.prompt().text == "Be bold."


def test_an_unchanged_prompt_is_not_downloaded_again(stub_server, make_client):
    client = make_client_with_copy(stub_server, make_client)
    stub_server.respond_with(not_modified_response("Be brave."))
    set_clock(client, 2_000)
    prompt = client.prompt()
    assert stub_server.requests[-1].headers["if-none-match"] == make_etag("Be brave.")
    assert (prompt.text, prompt.ledger_id, prompt.is_stale) == ("Be brave.", 41, False)
    assert prompt.fetched_at.timestamp() == 1_000


def test_a_rolled_back_version_is_not_downloaded_again(stub_server, make_client):
    client = make_client_with_copy(stub_server, make_client)
    stub_server.respond_with(prompt_response("Be bold.", 2), not_modified_response("Be brave."))
    set_clock(client, 2_000)
    assert client.prompt().text == "Be bold."
    set_clock(client, 3_000)
    assert client.prompt().text == "Be brave."
    assert (
        stub_server.requests[-1].headers["if-none-match"]
        == f"{make_etag('Be bold.')}, {make_etag('Be brave.')}"
    )


def test_a_previous_version_expires_after_an_hour(stub_server, make_client):
    client = make_client_with_copy(stub_server, make_client)
    stub_server.respond_with(prompt_response("Be bold.", 2), not_modified_response("Be bold."))
    for later in (1_400, 4_000, 5_000):
        set_clock(client, later)
        assert client.prompt().text == "Be bold."
    index = client.client._core.cache.index
    assert [list(entries) for entries in index._previous.values()] == [[]]
    assert len(stub_server.requests) == 4


def test_slot_values_are_downloaded_again_after_an_hour(stub_server, make_client):
    clock = {
        "section": "time",
        "volatility": "turn",
        "range": [0, 9],
        "slot": "dramatis.time",
        "is_cacheable": False,
    }
    stub_server.respond_with(prompt_response("It is ten", segments=[clock]))
    client = make_client(stub_server.url)
    set_clock(client, 1_000)
    client.prompt()
    set_clock(client, 4_599)
    client.prompt()
    assert "if-none-match" in stub_server.requests[-1].headers
    set_clock(client, 1_000 + 2 * 3_600)
    client.prompt()
    assert "if-none-match" not in stub_server.requests[-1].headers


@pytest.mark.parametrize("reason", UNAVAILABLE)
def test_the_copy_is_used_after_any_other_response(reason, stub_server, make_client):
    client = make_client_with_copy(stub_server, make_client)
    stub_server.respond_with(UNAVAILABLE[reason])
    set_clock(client, 2_000)
    cached = client.prompt()
    assert (cached.text, cached.is_stale) == ("Be brave.", True)
    stub_server.respond_with(prompt_response("Be bold.", 2))
    set_clock(client, 2_061)
    client.prompt()
    client.wait_for_refreshes()
    assert client.prompt().text == "Be bold."


def test_the_copy_is_used_while_the_server_is_down_and_requests_are_rare(stub_server, make_client):
    client = make_client_with_copy(stub_server, make_client)
    stub_server.stop()
    set_clock(client, 2_000)
    started_at = time.monotonic()
    for _ in range(500):
        assert client.prompt().is_stale
    assert time.monotonic() - started_at < 30
    stub_server.start()
    stub_server.respond_with(prompt_response("Be bold.", 2))
    set_clock(client, 2_004)
    assert client.prompt().text == "Be brave."
    assert len(stub_server.requests) == 1
    set_clock(client, 2_006)
    client.prompt()
    client.wait_for_refreshes()
    assert client.prompt().text == "Be bold."


@pytest.mark.slow
def test_a_silent_server_blocks_only_one_call(make_client, stub_server):
    client = make_client_with_copy(stub_server, make_client, timeout=2)
    stub_server.stop()
    with socket.socket() as silent_listener:
        silent_listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        silent_listener.bind(("127.0.0.1", stub_server.port))
        silent_listener.listen(50)
        set_clock(client, 2_000)
        started_at = time.monotonic()
        assert client.prompt().is_stale
        assert 1.9 < time.monotonic() - started_at < 30
        set_clock(client, 2_100)
        started_at = time.monotonic()
        assert client.prompt().is_stale
        assert time.monotonic() - started_at < 1.9
        client.wait_for_refreshes()


@pytest.mark.parametrize("status", FINAL)
def test_a_refusal_is_raised_and_the_copy_is_removed(
    status, stub_server, make_client, tmp_path, short_delays
):
    client = make_client_with_copy(stub_server, make_client, cache_dir=tmp_path)
    assert len(list(tmp_path.rglob("*.json"))) == 1
    stub_server.respond_with(problem_response(status, FINAL[status]))
    set_clock(client, 2_000)
    with pytest.raises(Problem) as raised:
        client.prompt()
    problem = raised.value
    assert (problem.status, problem.code, problem.request_id) == (status, FINAL[status], "req-7")
    assert problem.errors[0].pointer == "/text"
    assert not list(tmp_path.rglob("*.json"))
    stub_server.stop()
    with pytest.raises(Unreachable):
        client.prompt()


@pytest.mark.parametrize("status", FINAL)
def test_a_refusal_of_a_background_refresh_is_raised_at_the_next_call(status, stub_server, make_client):
    client = make_client_with_copy(stub_server, make_client)
    stub_server.respond_with(problem_response(status, FINAL[status]))
    set_clock(client, 1_031)
    assert client.prompt().is_stale
    client.wait_for_refreshes()
    with pytest.raises(Problem, match=FINAL[status]):
        client.prompt()


def test_a_bad_key_removes_every_copy_and_another_refusal_one(
    stub_server, make_client, tmp_path, short_delays
):
    def reply_with_prompt(request: ReceivedRequest) -> StubResponse:
        return prompt_response("Be brave.")

    stub_server.reply = reply_with_prompt
    client = make_client(stub_server.url, cache_dir=tmp_path)
    for channel in ("deck", "mast", "galley"):
        client.prompt("pilot", channel)
    set_clock(client, time.time() + 1_000)
    stub_server.respond_with(problem_response(410, "erased"))
    with pytest.raises(Problem):
        client.prompt("pilot", "deck")
    assert len(list(tmp_path.rglob("*.json"))) == 2
    stub_server.respond_with(problem_response(401, "invalid_key"))
    with pytest.raises(Problem):
        client.call("remember", "Likes tea.")
    assert not list(tmp_path.rglob("*.json"))
    stub_server.stop()
    with pytest.raises(Unreachable):
        client.prompt("pilot", "mast")


def test_a_failure_does_not_restore_a_copy_that_was_evicted_meanwhile(stub_server, make_client):
    client = make_client_with_copy(stub_server, make_client)

    def evict_all(request: ReceivedRequest) -> None:
        client.client._core.cache.index.clear()

    stub_server.reply = evict_all
    set_clock(client, 2_000)
    with pytest.raises(Unreachable):
        client.prompt()


def test_without_a_copy_the_first_fetch_is_retried(stub_server, make_client, short_delays):
    stub_server.respond_with(None, StubResponse(503), prompt_response("Be brave."))
    assert make_client(stub_server.url).prompt().text == "Be brave."
    assert len(stub_server.requests) == 3


@pytest.mark.planted
def test_a_cache_without_stale_if_error_is_detected(stub_server, make_client, monkeypatch):
    def raise_error(self: PromptCache, name: object, copy: object, error: Exception) -> None:
        raise error

    monkeypatch.setattr(PromptCache, "serve_stale", raise_error)
    with pytest.raises(Unreachable):
        test_the_copy_is_used_after_any_other_response("hangs up", stub_server, make_client)


@pytest.mark.planted
def test_a_cache_that_trusts_proxies_is_detected(stub_server, make_client, monkeypatch):
    monkeypatch.setattr("dramatis_client.cache.is_final", lambda error: True)
    with pytest.raises(Unreachable):
        test_the_copy_is_used_after_any_other_response("not found, says the proxy", stub_server, make_client)

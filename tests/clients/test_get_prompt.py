"""Options of get_prompt and of the client: environment, single flight, fallback, ttl and timeouts."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dramatis_client import AsyncClient, Client, Problem, Prompt, Unreachable, __version__
from dramatis_client.cache import PromptCache
from dramatis_client.responses import Response
from tests.clients.drivers import KEY, AsyncDriver, BlockingDriver, set_clock
from tests.clients.stub_server import (
    ReceivedRequest,
    StubResponse,
    StubServer,
    not_modified_response,
    problem_response,
    prompt_response,
)

VARIABLES = ("URL", "KEY", "CACHE_DIR", "TIMEOUT", "ATTEMPTS")


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(f"DRAMATIS_{name}", raising=False)


def respond_when(event: threading.Event, stub_server: StubServer, *responses: StubResponse | None) -> None:
    """Hold every response back until the event is set."""
    stub_server.respond_with(*responses)
    reply = stub_server.reply

    def reply_later(request: ReceivedRequest) -> StubResponse | None:
        event.wait(60)
        return reply(request)

    stub_server.reply = reply_later


def wait_until_requested(stub_server: StubServer, count: int) -> None:
    deadline = time.monotonic() + 60
    while len(stub_server.requests) < count and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(stub_server.requests) == count


# --- settings ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_settings_come_from_the_environment(kind, monkeypatch, tmp_path):
    values = ("http://127.0.0.1:9/", f" {KEY} ", str(tmp_path), "1.5", "2")
    for name, value in zip(VARIABLES, values, strict=True):
        monkeypatch.setenv(f"DRAMATIS_{name}", value)
    core = kind()._core
    assert (core.url, core.timeout, core.attempts) == ("http://127.0.0.1:9", 1.5, 2)
    assert core.headers["Authorization"] == f"Bearer {KEY}"
    assert core.cache.disk.folder.parent == tmp_path
    other = kind("http://127.0.0.1:8", "drm_bot_x", cache_dir="", timeout=3, attempts=1)._core
    assert (other.url, other.timeout, other.attempts, other.cache.disk) == ("http://127.0.0.1:8", 3, 1, None)


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_missing_or_wrong_setting_is_named(kind, monkeypatch):
    with pytest.raises(ValueError, match="DRAMATIS_URL"):
        kind(key=KEY)
    monkeypatch.setenv("DRAMATIS_URL", "http://127.0.0.1:9")
    with pytest.raises(ValueError, match="DRAMATIS_KEY"):
        kind()
    monkeypatch.setenv("DRAMATIS_TIMEOUT", "soon")
    with pytest.raises(ValueError, match="DRAMATIS_TIMEOUT"):
        kind(key=KEY)


def test_the_user_agent_has_the_version(stub_server, make_client):
    stub_server.respond_with(prompt_response("Be brave."))
    make_client(stub_server.url).prompt()
    assert stub_server.requests[0].headers["user-agent"] == f"dramatis-client/{__version__}"


# --- single flight -------------------------------------------------------------------------------------


def test_threads_share_one_request_at_the_first_start(stub_server):
    may_answer = threading.Event()
    respond_when(may_answer, stub_server, prompt_response("Be brave."))
    client = BlockingDriver(stub_server.url)
    with ThreadPoolExecutor(20) as pool:
        futures = [pool.submit(client.prompt) for _ in range(20)]
        wait_until_requested(stub_server, 1)
        time.sleep(0.2)
        may_answer.set()
        assert {future.result().text for future in futures} == {"Be brave."}
    assert len(stub_server.requests) == 1
    client.close()


def test_tasks_share_one_request_at_the_first_start(stub_server):
    stub_server.respond_with(prompt_response("Be brave."))
    client = AsyncDriver(stub_server.url)

    async def ask() -> list[Prompt]:
        return await asyncio.gather(*[client.client.get_prompt("pilot", "deck") for _ in range(20)])

    assert {prompt.text for prompt in client.run(ask())} == {"Be brave."}
    assert len(stub_server.requests) == 1
    client.close()


def test_callers_share_the_error_too_and_the_next_call_asks_again(stub_server):
    may_answer = threading.Event()
    refusal = problem_response(404, "not_found")
    respond_when(may_answer, stub_server, refusal, prompt_response("Be brave."))
    client = BlockingDriver(stub_server.url)
    begun = threading.Semaphore(0)

    def begin_and_ask() -> Prompt:
        begun.release()
        return client.prompt()

    with ThreadPoolExecutor(5) as pool:
        futures = [pool.submit(begin_and_ask) for _ in range(5)]
        wait_until_requested(stub_server, 1)
        for _ in range(5):
            assert begun.acquire(timeout=60)
        time.sleep(0.2)
        may_answer.set()
        assert [getattr(future.exception(), "status", 0) for future in futures] == [404] * 5
    assert client.prompt().text == "Be brave."
    client.close()


def test_a_cancelled_task_leaves_the_request_to_another(stub_server):
    may_answer = threading.Event()
    respond_when(may_answer, stub_server, prompt_response("Be brave."))
    client = AsyncDriver(stub_server.url)

    async def ask() -> Prompt:
        first, second, third = [
            asyncio.create_task(client.client.get_prompt("pilot", "deck")) for _ in range(3)
        ]
        while not stub_server.requests:
            await asyncio.sleep(0.01)
        third.cancel()
        await asyncio.sleep(0.05)
        first.cancel()
        await asyncio.sleep(0.05)
        may_answer.set()
        async with asyncio.timeout(60):
            return await second

    assert client.run(ask()).text == "Be brave."
    assert len(stub_server.requests) == 2
    client.close()


def test_a_call_with_a_shorter_timeout_does_not_wait_for_a_longer_one(stub_server):
    may_answer = threading.Event()
    respond_when(may_answer, stub_server, prompt_response("Be brave."))
    client = BlockingDriver(stub_server.url)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(client.prompt)
        wait_until_requested(stub_server, 1)
        with pytest.raises(Unreachable):
            client.prompt(timeout=0.2, attempts=1)
        assert not slow.done()
        may_answer.set()
        assert slow.result().text == "Be brave."
    client.close()


@pytest.mark.planted
def test_a_cache_without_single_flight_is_detected(stub_server, monkeypatch):
    monkeypatch.setattr(PromptCache, "fetch_once", PromptCache.fetch)
    with pytest.raises(AssertionError):
        test_tasks_share_one_request_at_the_first_start(stub_server)


# --- fallback ------------------------------------------------------------------------------------------


def test_the_fallback_is_used_without_a_copy_and_later_calls_are_not_retried(
    stub_server, make_client, short_delays
):
    client = make_client(stub_server.url)
    stub_server.respond_with(StubResponse(502))
    prompt = client.prompt(fallback="You are a pilot.")
    assert (prompt.text, prompt.is_fallback, prompt.is_stale) == ("You are a pilot.", True, True)
    assert (prompt.agent, prompt.channel, prompt.version, prompt.ledger_id) == ("pilot", "deck", 0, 0)
    assert "".join([block.text for block in prompt.blocks]) == prompt.text
    assert len(stub_server.requests) == 3
    assert client.prompt(fallback="Other.").text == "Other."
    assert len(stub_server.requests) == 4
    with pytest.raises(Unreachable):
        client.prompt()
    assert len(stub_server.requests) == 7
    stub_server.respond_with(prompt_response("Be brave."))
    fetched = client.prompt(fallback="Other.")
    assert (fetched.text, fetched.is_fallback) == ("Be brave.", False)


def test_a_copy_is_better_than_the_fallback(stub_server, make_client, tmp_path, short_delays):
    stub_server.respond_with(prompt_response("Be brave."))
    make_client(stub_server.url, cache_dir=tmp_path).prompt()
    stub_server.stop()
    assert make_client(stub_server.url, cache_dir=tmp_path).prompt(fallback="Other.").text == "Be brave."


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_refusal_is_raised_in_spite_of_a_fallback(status, stub_server, make_client, short_delays):
    client = make_client(stub_server.url)
    stub_server.respond_with(StubResponse(502), problem_response(status, "refused"))
    assert client.prompt(fallback="Other.", attempts=1).is_fallback
    with pytest.raises(Problem):
        client.prompt(fallback="Other.")


def test_a_used_fallback_is_reported_without_a_ledger_row(stub_server, make_client):
    client = make_client(stub_server.url)
    stub_server.respond_with(None)
    prompt = client.prompt(fallback="Other.", attempts=1)
    stub_server.respond_with(StubResponse(200, b"{}", {"Content-Type": "application/json"}))
    client.call("report", prompt)
    assert b"ledger_id" not in stub_server.requests[-1].body


# --- version -------------------------------------------------------------------------------------------


def test_a_version_by_number_is_cached_apart_from_the_label(stub_server, make_client, tmp_path):
    client = make_client(stub_server.url, cache_dir=tmp_path)
    stub_server.respond_with(prompt_response("Be bold.", 2), prompt_response("Be brave.", 1))
    assert client.prompt().version == 2
    assert client.prompt(version=1).text == "Be brave."
    assert stub_server.requests[-1].path.endswith("?label=production&version=1")
    assert "if-none-match" not in stub_server.requests[-1].headers
    assert (client.prompt().version, client.prompt(version=1).version) == (2, 1)
    assert len(stub_server.requests) == 2
    stub_server.stop()
    again = make_client(stub_server.url, cache_dir=tmp_path)
    assert (again.prompt(version=1).version, again.prompt().version) == (1, 2)


# --- ttl, timeout and attempts -------------------------------------------------------------------------


def test_a_ttl_replaces_max_age(stub_server, make_client):
    client = make_client(stub_server.url)
    stub_server.respond_with(prompt_response("Be brave."))
    set_clock(client, 1_000)
    client.prompt()
    set_clock(client, 1_500)
    assert not client.prompt(ttl=600).is_stale
    assert len(stub_server.requests) == 1
    stub_server.respond_with(prompt_response("Be bold.", 2))
    set_clock(client, 1_700)
    assert client.prompt(ttl=600).is_stale
    client.wait_for_refreshes()
    assert client.prompt(ttl=600).text == "Be bold."


def test_a_ttl_of_zero_asks_the_server_at_every_call(stub_server, make_client):
    client = make_client(stub_server.url)
    stub_server.respond_with(
        prompt_response("Be brave."), prompt_response("Be bold.", 2), not_modified_response("Be bold.")
    )
    assert [client.prompt(ttl=0).text for _ in range(3)] == ["Be brave.", "Be bold.", "Be bold."]
    assert len(stub_server.requests) == 3
    stub_server.stop()
    assert client.prompt(ttl=0).text == "Be bold."


@pytest.mark.parametrize(
    "options", [{"version": 0}, {"ttl": -1}, {"ttl": float("nan")}, {"timeout": 0}, {"attempts": 0}], ids=str
)
def test_a_wrong_option_is_rejected(options, stub_server, make_client):
    with pytest.raises(ValueError, match=next(iter(options)).removesuffix("s")):
        make_client(stub_server.url).prompt(**options)
    assert not stub_server.requests


def test_attempts_and_timeout_of_one_call(stub_server, make_client, short_delays):
    client = make_client(stub_server.url, attempts=5)
    stub_server.respond_with(StubResponse(503))
    with pytest.raises(Unreachable):
        client.prompt(attempts=2)
    assert len(stub_server.requests) == 2
    with pytest.raises(Unreachable):
        client.call("skill", "pilot", "tea", attempts=1)
    assert len(stub_server.requests) == 3
    may_answer = threading.Event()
    respond_when(may_answer, stub_server, prompt_response("Be brave."))
    started_at = time.monotonic()
    with pytest.raises(Unreachable):
        client.call("render", "pilot", "deck", append="Hurry.", timeout=0.2, attempts=1)
    assert time.monotonic() - started_at < 30
    may_answer.set()


def test_the_text_of_a_problem_names_the_fields():
    def build_problem(detail: str, errors: str) -> Problem:
        body = f'{{"code":"invalid","detail":"{detail}","errors":{errors}}}'.encode()
        problem = Response(422, {"content-type": "application/problem+json"}, body).parse_problem()
        assert problem
        return problem

    one = build_problem("No such field.", '[{"detail":"No such field.","pointer":"/taks"}]')
    assert str(one) == "422 invalid: /taks: No such field."
    two = build_problem(
        "Two errors.", '[{"detail":"Needed.","pointer":"/a"},{"detail":"Odd.","parameter":"at"}]'
    )
    assert str(two) == "422 invalid: Two errors. (/a: Needed. at: Odd.)"
    assert str(build_problem("Wrong.", "[]")) == "422 invalid: Wrong."

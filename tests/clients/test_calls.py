"""All calls but fetch: requests, retries and errors."""

import json
import pickle
import threading
import time

import pytest

from dramatis_client import Problem, Unreachable
from dramatis_client.responses import Response
from dramatis_client.retries import get_retry_delay
from tests.clients.drivers import KEY, BlockingDriver, set_clock
from tests.clients.stub_server import StubResponse, not_modified_response, problem_response, prompt_response

JSON = {"Content-Type": "application/json"}
MEMORY = StubResponse(201, b'{"id":7,"text":"Likes tea.","agent":"pilot","status":"proposed"}', JSON)
SKILL = StubResponse(
    200, b'{"agent":"pilot","name":"tea","description":"Makes tea.","body":"Boil water."}', JSON
)
RETRYABLE = {
    "too many": problem_response(429, "rate_limited", Retry_After="0"),
    "down": problem_response(503, "unavailable", Retry_After="0"),
    "still running": problem_response(409, "in_progress", Retry_After="0"),
    "gateway": StubResponse(502),
    "gateway in time": StubResponse(504),
    "hangs up": None,
}
FINAL = {
    "not fitting": problem_response(422, "invalid"),
    "in use": problem_response(409, "in_use"),
    "broken": problem_response(500, "server_error"),
    "long wait": problem_response(503, "unavailable", Retry_After="3600"),
}


def test_a_render_sends_its_facts(stub_server, make_client):
    stub_server.respond_with(prompt_response("Be brave."))
    prompt = make_client(stub_server.url).call("render", "pilot", "deck", task=3, is_background=True)
    [request] = stub_server.requests
    assert (request.method, request.path) == ("POST", "/api/v1/agents/pilot/channels/deck/prompt:render")
    body = json.loads(request.body)
    assert body == {"label": "production", "task": 3, "is_background": True}
    assert prompt.text == "Be brave."


def test_a_render_is_never_answered_from_memory(stub_server, make_client, short_delays):
    stub_server.respond_with(prompt_response("Be brave."))
    client = make_client(stub_server.url)
    client.prompt()
    stub_server.stop()
    with pytest.raises(Unreachable):
        client.call("render", "pilot", "deck")


def test_a_skill_and_a_step(stub_server, make_client):
    client = make_client(stub_server.url)
    stub_server.respond_with(SKILL)
    assert client.call("skill", "pilot", "tea").body == "Boil water."
    stub_server.respond_with(StubResponse(200, b'{"number":4}', JSON))
    assert client.call("complete_step", 4, 0) == {"number": 4}
    assert stub_server.requests[-1].path == "/api/v1/tasks/4/steps/0:complete"
    assert json.loads(stub_server.requests[-1].body) == {"is_done": True}


@pytest.mark.parametrize("reason", RETRYABLE)
def test_a_passing_failure_is_retried_with_the_same_idempotency_key(
    reason, stub_server, make_client, short_delays
):
    stub_server.respond_with(RETRYABLE[reason], RETRYABLE[reason], MEMORY)
    memory = make_client(stub_server.url).call("remember", "Likes tea.", agent="pilot")
    assert (memory.id, memory.status) == (7, "proposed")
    keys = [request.headers["idempotency-key"] for request in stub_server.requests]
    assert len(keys) == 3
    assert len(set(keys)) == 1


def test_two_memories_have_two_idempotency_keys(stub_server, make_client):
    stub_server.respond_with(MEMORY)
    client = make_client(stub_server.url)
    client.call("remember", "Likes tea.")
    client.call("remember", "Likes tea.")
    assert len({request.headers["idempotency-key"] for request in stub_server.requests}) == 2


@pytest.mark.parametrize("reason", FINAL)
def test_a_final_failure_is_raised_at_once(reason, stub_server, make_client):
    stub_server.respond_with(FINAL[reason])
    with pytest.raises(Problem) as raised:
        make_client(stub_server.url).call("remember", "Likes tea.")
    assert raised.value.detail == "It is refused."
    assert len(stub_server.requests) == 1


def test_the_failure_of_the_last_attempt_is_raised(stub_server, make_client, short_delays):
    client = make_client(stub_server.url, attempts=4)
    stub_server.respond_with(problem_response(503, "unavailable", Retry_After="0"))
    with pytest.raises(Problem, match="503"):
        client.call("skill", "pilot", "tea")
    assert len(stub_server.requests) == 4
    stub_server.stop()
    with pytest.raises(Unreachable):
        client.call("skill", "pilot", "tea")


@pytest.mark.slow
def test_retry_after_is_respected(stub_server, make_client, short_delays):
    stub_server.respond_with(problem_response(429, "rate_limited", Retry_After="1"), MEMORY)
    started_at = time.monotonic()
    make_client(stub_server.url).call("remember", "Likes tea.")
    assert time.monotonic() - started_at >= 1


def test_delays_grow_and_have_jitter():
    response = Response(503, {}, b"")
    delays = [[get_retry_delay(response, attempt) or 0 for _ in range(200)] for attempt in range(3)]
    for attempt, attempt_delays in enumerate(delays):
        assert len(set(attempt_delays)) > 100
        assert 0.125 * 2**attempt <= min(attempt_delays) <= max(attempt_delays) <= 0.375 * 2**attempt


@pytest.mark.parametrize("header", ["", "soon", "-1", "Wed, 21 Oct 2026 07:28:00 GMT", "²", "9" * 400])
def test_an_invalid_retry_after_is_ignored(header):
    assert Response(503, {"retry-after": header}, b"").retry_after is None


def test_a_closed_client_raises_and_leaves_no_thread(stub_server):
    may_answer = threading.Event()
    stub_server.respond_with(prompt_response("Be brave."))
    client = BlockingDriver(stub_server.url)
    set_clock(client, 1_000)
    client.prompt()

    def reply_slowly(request: object) -> StubResponse:
        may_answer.wait(60)
        return not_modified_response("Be brave.")

    stub_server.reply = reply_slowly
    set_clock(client, 1_100)
    client.prompt()
    threading.Timer(0.2, may_answer.set).start()
    client.close()
    with pytest.raises(RuntimeError, match="closed"):
        client.prompt()
    assert not [one for one in threading.enumerate() if one.name.startswith("dramatis-refresh")]
    client.close()


@pytest.mark.slow
def test_a_delay_between_retries_ends_when_the_client_closes(stub_server):
    stub_server.respond_with(problem_response(503, "unavailable", Retry_After="20"))
    client = BlockingDriver(stub_server.url)
    threading.Timer(0.3, client.client._closing.set).start()
    started_at = time.monotonic()
    with pytest.raises(Problem):
        client.call("skill", "pilot", "tea")
    assert time.monotonic() - started_at < 15


@pytest.mark.parametrize(
    "url", ["", "ftp://x", "dramatis.example.com", "https://me:pw@x", "https://x/?key=1", "https://x/#k"]
)
def test_an_address_with_other_parts_is_rejected(url, make_client):
    with pytest.raises(ValueError, match="URL"):
        make_client(url)


@pytest.mark.parametrize("name", ["", ".", "..", "..."])
def test_a_name_that_would_change_the_path_is_rejected(name, stub_server, make_client):
    client = make_client(stub_server.url)
    for method, args in {"get_prompt": (name, "deck"), "skill": ("pilot", name), "push": (name, {})}.items():
        with pytest.raises(ValueError, match="name"):
            client.call(method, *args)
    assert not stub_server.requests


def test_a_slash_in_a_name_is_quoted(stub_server, make_client):
    stub_server.respond_with(SKILL)
    make_client(stub_server.url).call("skill", "a/../b?c#d", "tea")
    assert stub_server.requests[0].path == "/api/v1/agents/a%2F..%2Fb%3Fc%23d/skills/tea"


def test_the_key_is_never_shown(stub_server, make_client, short_delays, caplog):
    caplog.set_level("DEBUG")
    client = make_client(stub_server.url)
    stub_server.respond_with(problem_response(401, "invalid_key"))
    with pytest.raises(Problem) as refused:
        client.prompt()
    stub_server.stop()
    with pytest.raises(Unreachable) as away:
        client.prompt()
    outputs = [
        repr(client.client),
        caplog.text,
        *map(repr, [refused.value, away.value, away.value.__cause__]),
    ]
    assert KEY not in " ".join(outputs)


def test_a_problem_can_be_pickled(stub_server, make_client):
    stub_server.respond_with(problem_response(422, "invalid"))
    with pytest.raises(Problem) as raised:
        make_client(stub_server.url).call("skill", "pilot", "tea")
    unpickled = pickle.loads(pickle.dumps(raised.value))  # noqa: S301  # our own
    assert vars(unpickled) == vars(raised.value)
    assert (
        str(unpickled)
        == str(raised.value)
        == ("422 invalid: It is refused. (/text: This field is required.)")
    )


def test_an_unexpected_response_raises_unreachable(stub_server, make_client):
    stub_server.respond_with(StubResponse(200, b'{"id":"x"}', JSON))
    with pytest.raises(Unreachable, match="does not match the request"):
        make_client(stub_server.url).call("remember", "Likes tea.")
    stub_server.respond_with(StubResponse(200, b"<h1>", {}))
    with pytest.raises(Unreachable, match="not JSON"):
        make_client(stub_server.url).call("complete_step", 1, 0)

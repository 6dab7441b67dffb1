"""Everything but fetching: what is sent, what is tried again and how often, and how it ends."""

import json
import pickle
import threading
import time

import pytest

from dramatis_client import Problem, Unreachable
from dramatis_client.answers import Answer
from dramatis_client.retrying import wait_after
from tests.clients.drivers import KEY, Blocking, at
from tests.clients.standing import Said, problem_said, prompt_said, unchanged

JSON = {"Content-Type": "application/json"}
MEMORY = Said(201, b'{"id":7,"text":"Likes tea.","agent":"pilot","state":"proposed"}', JSON)
SKILL = Said(200, b'{"agent":"pilot","name":"tea","description":"Makes tea.","body":"Boil water."}', JSON)
PASSING = {
    "too many": problem_said(429, "rate_limited", Retry_After="0"),
    "down": problem_said(503, "unavailable", Retry_After="0"),
    "still running": problem_said(409, "in_progress", Retry_After="0"),
    "gateway": Said(502),
    "gateway in time": Said(504),
    "hangs up": None,
}
LASTING = {
    "not fitting": problem_said(422, "invalid"),
    "in use": problem_said(409, "in_use"),
    "broken": problem_said(500, "server_error"),
    "long wait": problem_said(503, "unavailable", Retry_After="3600"),
}


def test_a_render_sends_its_facts(stand_in, make_client):
    stand_in.says(prompt_said("Be brave."))
    prompt = make_client(stand_in.url).call("render", "pilot", "deck", task=3, is_background=True)
    [heard] = stand_in.heard
    assert (heard.method, heard.path) == ("POST", "/api/v1/agents/pilot/prompt:render")
    said = json.loads(heard.body)
    assert said == {"channel": "deck", "label": "production", "task": 3, "is_background": True}
    assert prompt.text == "Be brave."


def test_a_render_is_never_answered_from_memory(stand_in, make_client, without_waiting):
    stand_in.says(prompt_said("Be brave."))
    client = make_client(stand_in.url)
    client.prompt()
    stand_in.stop()
    with pytest.raises(Unreachable):
        client.call("render", "pilot", "deck")


def test_a_skill_and_a_step(stand_in, make_client):
    client = make_client(stand_in.url)
    stand_in.says(SKILL)
    assert client.call("skill", "pilot", "tea").body == "Boil water."
    stand_in.says(Said(200, b'{"number":4}', JSON))
    assert client.call("tick", 4, 0) == {"number": 4}
    assert stand_in.heard[-1].path == "/api/v1/tasks/4/steps/0:tick"
    assert json.loads(stand_in.heard[-1].body) == {"is_done": True}


@pytest.mark.parametrize("why", PASSING)
def test_what_passes_is_tried_again_under_the_same_name(why, stand_in, make_client, without_waiting):
    stand_in.says(PASSING[why], PASSING[why], MEMORY)
    memory = make_client(stand_in.url).call("remember", "Likes tea.", agent="pilot")
    assert (memory.id, memory.state) == (7, "proposed")
    names = [heard.headers["idempotency-key"] for heard in stand_in.heard]
    assert len(names) == 3
    assert len(set(names)) == 1


def test_two_memories_have_two_names(stand_in, make_client):
    stand_in.says(MEMORY)
    client = make_client(stand_in.url)
    client.call("remember", "Likes tea.")
    client.call("remember", "Likes tea.")
    assert len({heard.headers["idempotency-key"] for heard in stand_in.heard}) == 2


@pytest.mark.parametrize("why", LASTING)
def test_what_lasts_is_raised_at_once(why, stand_in, make_client):
    stand_in.says(LASTING[why])
    with pytest.raises(Problem) as raised:
        make_client(stand_in.url).call("remember", "Likes tea.")
    assert raised.value.detail == "It is refused."
    assert len(stand_in.heard) == 1


def test_after_the_last_attempt_it_is_raised(stand_in, make_client, without_waiting):
    client = make_client(stand_in.url, attempts=4)
    stand_in.says(problem_said(503, "unavailable", Retry_After="0"))
    with pytest.raises(Problem, match="503"):
        client.call("skill", "pilot", "tea")
    assert len(stand_in.heard) == 4
    stand_in.stop()
    with pytest.raises(Unreachable):
        client.call("skill", "pilot", "tea")


def test_retry_after_is_waited_for(stand_in, make_client, without_waiting):
    stand_in.says(problem_said(429, "rate_limited", Retry_After="1"), MEMORY)
    begun = time.monotonic()
    make_client(stand_in.url).call("remember", "Likes tea.")
    assert time.monotonic() - begun >= 1


def test_waits_grow_and_are_spread():
    lost = Answer(503, {}, b"")
    waits = [[wait_after(lost, attempt) or 0 for _ in range(200)] for attempt in range(3)]
    for attempt, some in enumerate(waits):
        assert len(set(some)) > 100
        assert 0.125 * 2**attempt <= min(some) <= max(some) <= 0.375 * 2**attempt


@pytest.mark.parametrize("said", ["", "soon", "-1", "Wed, 21 Oct 2026 07:28:00 GMT", "²", "9" * 400])
def test_a_wait_that_cannot_be_read_is_none(said):
    assert Answer(503, {"retry-after": said}, b"").retry_after is None


def test_a_closed_client_says_so_and_leaves_no_thread(stand_in):
    may_answer = threading.Event()
    stand_in.says(prompt_said("Be brave."))
    client = Blocking(stand_in.url)
    at(client, 1_000)
    client.prompt()

    def slowly(heard: object) -> Said:
        may_answer.wait(10)
        return unchanged("Be brave.")

    stand_in.reply = slowly
    at(client, 1_100)
    client.prompt()
    threading.Timer(0.2, may_answer.set).start()
    client.close()
    with pytest.raises(RuntimeError, match="closed"):
        client.prompt()
    assert not [one for one in threading.enumerate() if one.name.startswith("dramatis-refresh")]
    client.close()


def test_a_wait_between_tries_ends_when_the_client_closes(stand_in):
    stand_in.says(problem_said(503, "unavailable", Retry_After="20"))
    client = Blocking(stand_in.url)
    threading.Timer(0.3, client.client._closing.set).start()
    begun = time.monotonic()
    with pytest.raises(Problem):
        client.call("skill", "pilot", "tea")
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(
    "url", ["", "ftp://x", "dramatis.example.com", "https://me:pw@x", "https://x/?key=1", "https://x/#k"]
)
def test_an_address_is_a_servers_and_nothing_else(url, make_client):
    with pytest.raises(ValueError, match="address"):
        make_client(url)


@pytest.mark.parametrize("name", ["", ".", "..", "..."])
def test_a_name_that_leads_elsewhere_is_not_sent(name, stand_in, make_client):
    client = make_client(stand_in.url)
    for verb, args in {"prompt": (name, "deck"), "skill": ("pilot", name), "push": (name, {})}.items():
        with pytest.raises(ValueError, match="name"):
            client.call(verb, *args)
    assert not stand_in.heard


def test_a_slash_in_a_name_stays_in_it(stand_in, make_client):
    stand_in.says(SKILL)
    make_client(stand_in.url).call("skill", "a/../b?c#d", "tea")
    assert stand_in.heard[0].path == "/api/v1/agents/a%2F..%2Fb%3Fc%23d/skills/tea"


def test_the_key_shows_nowhere(stand_in, make_client, without_waiting, caplog):
    caplog.set_level("DEBUG")
    client = make_client(stand_in.url)
    stand_in.says(problem_said(401, "bad_key"))
    with pytest.raises(Problem) as refused:
        client.prompt()
    stand_in.stop()
    with pytest.raises(Unreachable) as away:
        client.prompt()
    shown = [repr(client.client), caplog.text, *map(repr, [refused.value, away.value, away.value.__cause__])]
    assert KEY not in " ".join(shown)


def test_a_problem_survives_the_way_home_from_a_worker(stand_in, make_client):
    stand_in.says(problem_said(422, "invalid"))
    with pytest.raises(Problem) as raised:
        make_client(stand_in.url).call("skill", "pilot", "tea")
    again = pickle.loads(pickle.dumps(raised.value))  # noqa: S301  # our own
    assert vars(again) == vars(raised.value)
    assert str(again) == str(raised.value) == "422 invalid: It is refused."


def test_an_answer_that_is_something_else_is_said_to_be(stand_in, make_client):
    stand_in.says(Said(200, b'{"id":"x"}', JSON))
    with pytest.raises(Unreachable, match="not what was asked for"):
        make_client(stand_in.url).call("remember", "Likes tea.")
    stand_in.says(Said(200, b"<h1>", {}))
    with pytest.raises(Unreachable, match="not JSON"):
        make_client(stand_in.url).call("tick", 1, 0)

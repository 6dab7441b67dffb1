"""Render and batch: slots filled from the request, many prompts at once, each with its ledger row."""

import json
from hashlib import sha256
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from personas.api.validation import build_validator, find_schema_errors
from personas.api_keys.services import create_key
from prompts.evidence.replay.services import replay_entry
from prompts.models import PromptVersion
from prompts.serving.call_contents.selectors import get_call_values
from prompts.serving.schema import BATCH_SCHEMA, SERVED_PROMPT_SCHEMA
from tests.factories import BY, make_agent, make_task
from tests.prompts.served_digests import is_recorded
from tests.prompts.serving.serving_stage import Stage, make_stage, statements_fail_at
from tests.shared_cast import (  # noqa: F401  # fixtures
    SharedCast,
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_elsewhere,
    shared_mallory,
    shared_props,
    shared_workspace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.prompts.serving.fetch_urls")]

RENDER, BATCH = "/api/v1/agents/pilot/channels/deck/prompt:render", "/api/v1/prompts:batchGet"
EVERYTHING = {
    "now": "1999-01-02T07:30:00+01:00",
    "timezone": "Europe/Lisbon",
    "host": {"os": "linux", "model": 1.5, "deep": [1, {"a": None}]},
    "sandbox": {"enabled": True},
    "session": {"id": "s-1", "plan_path": "/plan.md"},
    "is_background": True,
    "previous_error": {"error": "Timeout", "message": "too slow"},
    "tools": ["read"],
    "append": "Be brief.</this-call>",
    "messages": [{"content": "Hello"}, {"role": "assistant", "content": "Hi"}],
}


def set_stage(shared: SharedCast) -> Any:
    return make_stage(shared.workspace)


@pytest.fixture
def stage(props: Stage) -> Stage:
    return props


def post(stage: Stage, address: str, body: object, secret: str = "", **options: Any) -> Any:
    data = body if isinstance(body, str | bytes) else json.dumps(body)
    options.setdefault("content_type", "application/json")
    return Client().post(address, data, HTTP_AUTHORIZATION=f"Bearer {secret or stage.secret}", **options)


def pointers(answer) -> list[str]:
    data = json.loads(answer.content)
    assert (answer.status_code, data["code"]) == (422, "invalid"), data
    return [error.get("pointer", error.get("parameter")) for error in data["errors"]]


def list_slot_warnings(data: dict[str, Any]) -> list[str]:
    return [warning for warning in data["warnings"] if "slots." in warning]


# --- render --------------------------------------------------------------------------------------------


def test_the_slots_of_a_call_are_in_the_text_and_the_row_reproduces_it(stage):
    answer = post(stage, RENDER, EVERYTHING)
    data = json.loads(answer.content)
    assert answer.status_code == 200, data
    text = data["text"]
    for expected in (
        "1999 at 06:30 (Europe/Lisbon)",
        "os=linux",
        "model=1.5",
        "/plan.md",
        "Timeout",
        "Be brief.",
    ):
        assert expected in text
    assert "Be brief.&lt;/this-call>" in text
    assert data["messages"] == [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    assert data["warnings"] == [
        "The tool read of the call has no definition.",
        "host.deep is not a known key: it has no effect.",
    ]
    assert find_schema_errors(build_validator(SERVED_PROMPT_SCHEMA), data) == []
    [row] = stage.rows
    assert (data["ledger_id"], data["slots"]) == (row.pk, get_call_values(row))
    replayed = replay_entry(stage.workspace, row.pk)
    assert replayed.is_exact
    assert replayed.text == text
    assert data["segments"][-1]["range"][1] == len(text)
    assert PromptVersion.objects.in_workspace(stage.workspace).count() == 1
    assert answer["Cache-Control"] == "private, no-store"
    assert answer["Dramatis-Digest"] == sha256(text.encode()).hexdigest()
    assert answer["RateLimit-Policy"].startswith('"render";')


def test_a_render_is_one_statement_once_cached(stage):
    post(stage, RENDER, EVERYTHING)
    with CaptureQueriesContext(connection) as queries:
        post(stage, RENDER, EVERYTHING)
    assert len(queries) == 1


def test_a_task_is_filled_in_by_its_number(stage):
    task = make_task(stage.workspace, "Sort the shed")
    data = json.loads(post(stage, RENDER, {"task": task.number}).content)
    assert "Sort the shed" in data["text"]
    assert data["slots"]["task"]["number"] == task.number
    assert replay_entry(stage.workspace, data["ledger_id"]).is_exact


def test_a_task_of_another_agent_or_workspace_is_not_there(stage, elsewhere):
    cook = make_agent(stage.workspace, "cook")
    theirs = make_task(stage.workspace, "Boil the soup", agent=cook)
    far = make_task(elsewhere, "Hide the map")
    for number in {theirs.number, far.number + 7, 2**31 - 1}:
        assert pointers(post(stage, RENDER, {"task": number})) == ["/task"]
    assert stage.rows == []


def test_a_key_that_may_not_render_learns_nothing_of_tasks(stage):
    task = make_task(stage.workspace, "Sort the shed")
    _, secret = create_key(stage.workspace, "Fetcher", {"verbs": ["fetch"]}, by=BY)
    for number in (task.number, task.number + 1):
        answer = post(stage, RENDER, {"task": number}, secret)
        assert (answer.status_code, answer.json()["code"]) == (403, "out_of_scope")


def test_slots_without_a_section_give_a_warning(elsewhere):
    stage = make_stage(elsewhere, layout="opal")
    data = json.loads(post(stage, RENDER, {"is_background": True}).content)
    assert list_slot_warnings(data) == ["The layout does not use slots.is_background."]


def test_a_time_that_the_server_fills_in_gives_no_warning(elsewhere):
    stage = make_stage(elsewhere, layout="opal")
    for body in ({}, {"timezone": "Europe/Lisbon"}):
        data = json.loads(post(stage, RENDER, body).content)
        assert "now" in data["slots"]
        assert list_slot_warnings(data) == []
    sent = json.loads(post(stage, RENDER, {"now": EVERYTHING["now"]}).content)
    assert list_slot_warnings(sent) == ["The layout does not use slots.now."]


INVALID = [
    ([], ""),
    ({"colour": 1}, "/colour"),
    ({"channel": "deck"}, "/channel"),
    ({"label": 4}, "/label"),
    ({"task": "4"}, "/task"),
    ({"task": 0}, "/task"),
    ({"task": True}, "/task"),
    ({"session": {"id": 4}}, "/session/id"),
    ({"tools": ["a", 4]}, "/tools/1"),
    ({"messages": [{"role": "user"}]}, "/messages/0/content"),
    ({"messages": [{"content": "x", "role": "system"}]}, "/messages/0/role"),
    ({"previous_error": {}}, "/previous_error/error"),
    ({"now": "2026-01-01T00:00:00"}, "/now"),
    ({"append": "x" * 20_001}, "/append"),
    ({"append": "a\0b"}, "/append"),
    ({"host": {"os": ["a\0b"]}}, "/host/os/0"),
    ({"host": "linux"}, "/host"),
]


def test_invalid_fields_are_named_by_json_pointer(stage):
    for body, pointer in INVALID:
        assert pointer in [name or "" for name in pointers(post(stage, RENDER, body))], body
    assert stage.rows == []


def test_an_unreadable_body_is_rejected(stage):
    bodies = [b"{", b"\xff", '{"label": NaN}', '{"label": "a", "label": "b"}', "[" * 5_000]
    bodies.append('{"append": "\\ud800"}')
    for body in bodies:
        answer = post(stage, RENDER, body)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_json"), body
    answer = post(stage, RENDER, "label=latest", content_type="application/x-www-form-urlencoded")
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
    assert Client().get(RENDER).status_code == Client().put(BATCH).status_code == 405
    assert Client().get(RENDER)["Allow"] == "POST"
    answer = post(stage, RENDER, {}, HTTP_ACCEPT="image/png")
    assert answer.status_code == 406
    assert stage.rows == []


def test_a_render_is_refused_like_a_fetch(stage):
    for address in (RENDER, BATCH):
        body = {} if address == RENDER else {"prompts": [{"agent": "pilot", "channel": "deck"}]}
        answer = post(stage, address, body, "nonsense")
        assert (answer.status_code, answer.json()["code"]) == (401, "invalid_key")
        answer = post(stage, f"{address}?key={stage.secret}", body)
        assert answer.status_code == 422 or answer.json()["code"] == "bad_request"
        with statements_fail_at("INSERT INTO prompts_ledgerentry"):
            answer = post(stage, address, body)
        assert b"Be brave." not in answer.content
    assert stage.rows == []


# --- many at once --------------------------------------------------------------------------------------


def test_each_of_many_has_its_own_status_and_row(stage):
    known = PromptVersion.objects.in_workspace(stage.workspace).get().digest
    items = [
        {"agent": "pilot", "channel": "deck"},
        {"agent": "nobody", "channel": "deck"},
        {"agent": "pilot", "channel": "deck", "label": "latest", "known_digest": known},
        {"agent": "pilot", "channel": "deck", "at": "2020-01-01T00:00:00Z"},
        {"agent": "pilot", "channel": "deck"},
    ]
    answer = post(stage, BATCH, {"prompts": items})
    results = json.loads(answer.content)["results"]
    assert answer.status_code == 200
    assert [result["status"] for result in results] == [
        *("served", "failed", "not_modified"),
        *("failed", "served"),
    ]
    asked = [(item["agent"], item["channel"], item.get("label", "production")) for item in items]
    assert [(result["agent"], result["channel"], result["label"]) for result in results] == asked
    assert [result["problem"]["code"] for result in results if "problem" in result] == [
        "not_found",
        "no_version",
    ]
    rows = stage.rows
    assert [row.status for row in rows] == [200, 304, 200]
    assert find_schema_errors(build_validator(BATCH_SCHEMA), json.loads(answer.content)) == []
    assert {row.request_id for row in rows} == {answer["X-Request-ID"]}
    for result, row in zip([results[0], results[4]], [rows[0], rows[2]], strict=True):
        assert result["prompt"]["ledger_id"] == row.pk
        assert is_recorded(row, result["prompt"]["served_digest"])
    assert results[2]["ledger_id"] == rows[1].pk


@pytest.mark.slow
def test_a_batch_has_at_least_one_and_at_most_fifty(stage):
    one = {"agent": "pilot", "channel": "deck"}
    assert pointers(post(stage, BATCH, {"prompts": []})) == ["/prompts"]
    assert pointers(post(stage, BATCH, {"prompts": [one] * 51})) == ["/prompts"]
    assert pointers(post(stage, BATCH, {"prompts": [one, {"agent": "pilot"}]})) == ["/prompts/1/channel"]
    results = json.loads(post(stage, BATCH, {"prompts": [one] * 50}).content)["results"]
    assert len({result["prompt"]["ledger_id"] for result in results}) == 50
    assert len(stage.rows) == 50


def test_an_item_that_cannot_be_recorded_gets_its_own_status(stage):
    one = {"agent": "pilot", "channel": "deck"}
    post(stage, BATCH, {"prompts": [one]})
    with statements_fail_at("INSERT INTO prompts_ledgerentry"):
        answer = post(stage, BATCH, {"prompts": [one, one]})
    results = json.loads(answer.content)["results"]
    assert [result["status"] for result in results] == ["failed", "failed"]
    assert [result["problem"]["status"] for result in results] == [503, 503]
    assert b"Be brave." not in answer.content

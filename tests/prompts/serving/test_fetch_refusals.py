"""Refused fetches, by the fast path and by Django: the response, and that no text is served."""

from itertools import product
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from personas.api_keys.format import generate_key_secret
from personas.api_keys.services import create_key, revoke_key
from tests.factories import BY, make_agent
from tests.prompts.serving.fetch_stage import (
    bearer,
    both_entry_points,
    fetch_by_fast_path,
    problem_json,
    send_fetch,
)
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


def set_stage(shared: SharedCast) -> Any:
    return make_stage(shared.workspace)


@pytest.fixture
def stage(props: Stage) -> Stage:
    return props


@both_entry_points
def test_a_key_in_the_url_is_always_rejected(stage, entry_point):
    spelled = (stage.secret, stage.secret.replace("_", "%5F"))
    for where, secret in product(("label=latest&key={}", "key={}", "label={}", "{}=1"), spelled):
        for authorization in (bearer(stage.secret), ""):
            response = send_fetch(entry_point, stage, query=where.format(secret), AUTHORIZATION=authorization)
            assert (response.status, problem_json(response)["code"]) == (400, "bad_request")
            assert stage.secret[8:] not in response.body.decode()
    assert stage.rows == []


@both_entry_points
def test_only_a_bearer_key_is_accepted_and_others_take_no_query(stage, entry_point):
    for header in ("", "Bearer", "Bearer ", "Bearer x", "Basic {}", "{}", "Token {}", "Bearer é{}"):
        with CaptureQueriesContext(connection) as queries:
            response = send_fetch(entry_point, stage, AUTHORIZATION=header.format(stage.secret))
        assert (response.status, problem_json(response)["code"]) == (401, "invalid_key")
        assert response.headers["WWW-Authenticate"].startswith("Bearer")
        assert len(queries) == 0


def test_all_bad_keys_get_the_same_response(stage, by_alice):
    gone, secret = create_key(stage.workspace, "Gone", {}, by=by_alice)
    assert send_fetch(fetch_by_fast_path, stage, AUTHORIZATION=bearer(secret)).status == 200
    revoke_key(gone, by=by_alice)
    problems = []
    for key in (secret, generate_key_secret(), "nonsense"):
        response = send_fetch(fetch_by_fast_path, stage, AUTHORIZATION=bearer(key))
        problems.append({**problem_json(response), "request_id": ""})
    assert problems[0] == problems[1] == problems[2]
    assert problems[0]["status"] == 401


def test_the_scheme_is_read_in_any_case(stage):
    assert send_fetch(fetch_by_fast_path, stage, AUTHORIZATION=f"bEaReR  {stage.secret} ").status == 200


@both_entry_points
def test_each_refusal_has_its_status_and_code(stage, entry_point, by_alice):
    make_agent(stage.workspace, "cook")
    _, narrow = create_key(stage.workspace, "Narrow", {"agents": ["cook"]}, by=by_alice)
    _, render = create_key(stage.workspace, "Renderer", {"verbs": ["render"]}, by=by_alice)
    for secret in (narrow, render):
        response = send_fetch(entry_point, stage, AUTHORIZATION=bearer(secret))
        assert (response.status, problem_json(response)["code"]) == (403, "out_of_scope")
    response = send_fetch(entry_point, stage, query="at=2020-01-01T00:00:00Z")
    assert (response.status, problem_json(response)["code"]) == (404, "no_version")
    response = send_fetch(entry_point, stage, path="/api/v1/agents/nobody/channels/deck/prompt")
    assert (response.status, problem_json(response)["code"]) == (404, "not_found")


def test_another_workspaces_agent_looks_like_none(stage, elsewhere):
    theirs = make_stage(elsewhere, text="Be sly.")
    problems = []
    for place in ("nobody/channels/deck", "pilot/channels/attic"):
        response = send_fetch(fetch_by_fast_path, theirs, path=f"/api/v1/agents/{place}/prompt")
        problems.append({**problem_json(response), "request_id": ""})
    assert problems[0] == problems[1]
    assert "Be sly." in send_fetch(fetch_by_fast_path, theirs).body.decode()
    assert "Be brave." in send_fetch(fetch_by_fast_path, stage).body.decode()


@both_entry_points
def test_without_a_row_no_byte_is_served_and_retry_after_is_sent(stage, entry_point):
    send_fetch(entry_point, stage)
    with statements_fail_at("INSERT INTO prompts_ledgerentry"):
        response = send_fetch(entry_point, stage)
    assert (response.status, problem_json(response)["code"], response.headers["Retry-After"]) == (
        503,
        "unavailable",
        "2",
    )
    assert response.headers["Cache-Control"] == "no-store"
    assert b"Be brave." not in response.body
    assert len(stage.rows) == 1


def test_a_rate_limited_client_gets_retry_after(stage, settings):
    settings.DRAMATIS_RATE_LIMITS = {**settings.DRAMATIS_RATE_LIMITS, "fetch": (2, 10)}
    _, secret = create_key(stage.workspace, "Hasty", {}, by=BY)
    response = [send_fetch(fetch_by_fast_path, stage, AUTHORIZATION=bearer(secret)) for _ in range(3)]
    assert [one.status for one in response] == [200, 200, 429]
    assert problem_json(response[-1])["code"] == "rate_limited"
    assert int(response[-1].headers["Retry-After"]) > 0
    assert len(stage.rows) == 2

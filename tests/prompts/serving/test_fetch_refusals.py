"""Who gets no prompt by either door: what they are told, and that nothing leaves."""

from itertools import product

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from personas.api_keys.format import generate_key_secret
from personas.api_keys.services import create_key, revoke_key
from tests.factories import BY, make_agent
from tests.prompts.serving.fetch_stage import ask, bearer, both_doors, by_fast_door, problem
from tests.prompts.serving.serving_stage import Stage, make_stage, statements_fail_at
from tests.shared_cast import (  # noqa: F401  # fixtures
    cast,
    shared_alice,
    shared_bob,
    shared_props,
    shared_workspace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.prompts.serving.fetch_urls")]

set_stage = make_stage


@pytest.fixture
def stage(props: Stage) -> Stage:
    return props


@both_doors
def test_a_key_in_the_address_is_refused_whoever_asks(stage, door):
    spelled = (stage.secret, stage.secret.replace("_", "%5F"))
    for where, secret in product(("channel=deck&key={}", "key={}", "channel={}", "{}=1"), spelled):
        for authorization in (bearer(stage.secret), ""):
            heard = ask(door, stage, query=where.format(secret), AUTHORIZATION=authorization)
            assert (heard.status, problem(heard)["code"]) == (400, "bad_request")
            assert stage.secret[8:] not in heard.body.decode()
    assert stage.rows == []


@both_doors
def test_only_a_bearers_key_counts_and_nothing_is_asked_for_others(stage, door):
    for said in ("", "Bearer", "Bearer ", "Bearer x", "Basic {}", "{}", "Token {}", "Bearer é{}"):
        with CaptureQueriesContext(connection) as queries:
            heard = ask(door, stage, AUTHORIZATION=said.format(stage.secret))
        assert (heard.status, problem(heard)["code"]) == (401, "bad_key")
        assert heard.headers["WWW-Authenticate"].startswith("Bearer")
        assert len(queries) == 0


def test_bad_keys_are_all_answered_alike(stage, by_alice):
    gone, secret = create_key(stage.workspace, "Gone", {}, by=by_alice)
    assert ask(by_fast_door, stage, AUTHORIZATION=bearer(secret)).status == 200
    revoke_key(gone, by=by_alice)
    said = []
    for key in (secret, generate_key_secret(), "nonsense"):
        heard = ask(by_fast_door, stage, AUTHORIZATION=bearer(key))
        said.append({**problem(heard), "request_id": ""})
    assert said[0] == said[1] == said[2]
    assert said[0]["status"] == 401


def test_the_scheme_is_read_in_any_case(stage):
    assert ask(by_fast_door, stage, AUTHORIZATION=f"bEaReR  {stage.secret} ").status == 200


@both_doors
def test_each_refusal_has_its_status_and_code(stage, door, by_alice):
    make_agent(stage.workspace, "cook")
    _, narrow = create_key(stage.workspace, "Narrow", {"agents": ["cook"]}, by=by_alice)
    _, render = create_key(stage.workspace, "Renderer", {"verbs": ["render"]}, by=by_alice)
    for secret in (narrow, render):
        heard = ask(door, stage, AUTHORIZATION=bearer(secret))
        assert (heard.status, problem(heard)["code"]) == (403, "out_of_scope")
    heard = ask(door, stage, query="channel=deck&at=2020-01-01T00:00:00Z")
    assert (heard.status, problem(heard)["code"]) == (404, "no_version")
    heard = ask(door, stage, path="/api/v1/agents/nobody/prompt")
    assert (heard.status, problem(heard)["code"]) == (404, "not_found")


def test_another_workspaces_agent_looks_like_none(stage, elsewhere):
    theirs = make_stage(elsewhere, words="Be sly.")
    said = []
    for path in ("/api/v1/agents/nobody/prompt", "/api/v1/agents/pilot/prompt"):
        channel = "deck" if "nobody" in path else "attic"
        heard = ask(by_fast_door, theirs, path=path, query=f"channel={channel}")
        said.append({**problem(heard), "request_id": ""})
    assert said[0] == said[1]
    assert "Be sly." in ask(by_fast_door, theirs).body.decode()
    assert "Be brave." in ask(by_fast_door, stage).body.decode()


@both_doors
def test_without_a_row_no_byte_leaves_and_the_caller_is_told_to_come_back(stage, door):
    ask(door, stage)
    with statements_fail_at("INSERT INTO prompts_ledgerentry"):
        heard = ask(door, stage)
    assert (heard.status, problem(heard)["code"], heard.headers["Retry-After"]) == (503, "unavailable", "2")
    assert heard.headers["Cache-Control"] == "no-store"
    assert b"Be brave." not in heard.body
    assert len(stage.rows) == 1


def test_whoever_asks_too_often_is_told_when_to_come_back(stage, settings):
    settings.DRAMATIS_RATE_LIMITS = {**settings.DRAMATIS_RATE_LIMITS, "fetch": (2, 10)}
    _, secret = create_key(stage.workspace, "Hasty", {}, by=BY)
    heard = [ask(by_fast_door, stage, AUTHORIZATION=bearer(secret)) for _ in range(3)]
    assert [one.status for one in heard] == [200, 200, 429]
    assert problem(heard[-1])["code"] == "rate_limited"
    assert int(heard[-1].headers["Retry-After"]) > 0
    assert len(stage.rows) == 2

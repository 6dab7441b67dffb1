"""Refused fetches, by the fast path and by Django: the response, and that no text is served."""

from itertools import product
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from personas.api_keys.format import generate_key_secret
from personas.api_keys.services import create_key, revoke_key
from personas.models import Agent, Channel
from personas.records.services import edit_record
from tests.factories import BY, make_agent, make_channel
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
    make_agent(stage.workspace, "spy", channels=[make_channel(stage.workspace, "attic")])
    theirs = make_stage(elsewhere, text="Be sly.")
    details = [get_detail(theirs, agent=agent).replace(agent, "…") for agent in ("nobody", "spy")]
    assert details == ["No agent “…”."] * 2
    assert "attic" not in get_detail(theirs, channel="attic").removeprefix(
        "The agent “pilot” is not on the channel “attic”."
    )
    assert "Be sly." in send_fetch(fetch_by_fast_path, theirs).body.decode()
    assert "Be brave." in send_fetch(fetch_by_fast_path, stage).body.decode()


def get_detail(stage: Stage, *, agent: str = "pilot", channel: str = "deck", **options: Any) -> str:
    path = f"/api/v1/agents/{agent}/channels/{channel}/prompt"
    response = send_fetch(fetch_by_fast_path, stage, path=path, **options)
    assert response.status == 404
    detail: str = problem_json(response)["detail"]
    return detail


def test_a_404_names_what_is_missing(stage):
    make_agent(stage.workspace, "cook")
    assert get_detail(stage, agent="nobody") == "No agent “nobody”."
    assert (
        get_detail(stage, channel="moon") == "The agent “pilot” is not on the channel “moon”. It has: deck."
    )
    assert get_detail(stage, agent="cook").endswith("It has no channels.")
    response = send_fetch(fetch_by_fast_path, stage, query="label=canary")
    assert problem_json(response)["code"] == "unknown_label"
    detail = "This prompt has no label “canary”. It has: latest, production."
    assert problem_json(response)["detail"] == detail
    assert get_detail(stage, agent="Pilot").startswith("No agent “Pilot”. Slugs consist of")
    assert get_detail(stage, agent="3") == "No agent “3”."
    assert stage.rows == []


def test_a_404_lists_only_channels_and_labels_of_the_key(stage, by_alice):
    """The key may ask for these names, but learns of no others."""
    agent = Agent.objects.in_workspace(stage.workspace).get(pk=stage.agent.pk)
    deck = Channel.objects.in_workspace(stage.workspace).get(slug="deck")
    channels = [deck, make_channel(stage.workspace, "attic")]
    edit_record(agent, {"channels": channels}, expected=agent.revision, by=BY)
    scopes = {"channels": ["deck", "moon"], "labels": ["production", "canary"]}
    make_channel(stage.workspace, "moon")
    _, secret = create_key(stage.workspace, "Narrow", scopes, by=by_alice)
    narrow: dict[str, Any] = {"AUTHORIZATION": bearer(secret)}
    assert get_detail(stage, channel="moon", **narrow).endswith("It has: deck.")
    assert get_detail(stage, query="label=canary", **narrow).endswith("It has: production.")
    assert "attic" in get_detail(stage, channel="nowhere")


MISSING_VERB = "This requires the verb “fetch”, which this key does not have."


@both_entry_points
def test_a_403_names_the_verb_or_the_limit(stage, entry_point, by_alice):
    cases = [
        ({"verbs": ["render"]}, MISSING_VERB, ', scope="fetch"'),
        ({"agents": ["cook"]}, "This key is limited to specific agents. “pilot” is not one of them.", ""),
        ({"channels": ["attic"]}, "This key is limited to specific channels. “deck” is not one of them.", ""),
        (
            {"labels": ["canary"]},
            "This key is limited to specific labels. “production” is not one of them.",
            "",
        ),
    ]
    make_agent(stage.workspace, "cook", channels=[make_channel(stage.workspace, "attic")])
    for number, (scopes, detail, scope) in enumerate(cases):
        _, secret = create_key(stage.workspace, f"Key {number}", scopes, by=by_alice)
        response = send_fetch(entry_point, stage, AUTHORIZATION=bearer(secret))
        assert (response.status, problem_json(response)["detail"]) == (403, detail)
        challenge = f'Bearer realm="Dramatis", error="insufficient_scope"{scope}'
        assert response.headers["WWW-Authenticate"] == challenge


@both_entry_points
def test_a_missing_key_and_an_invalid_one_are_told_apart(stage, entry_point):
    missing = send_fetch(entry_point, stage, AUTHORIZATION="Basic abc")
    assert problem_json(missing)["detail"].startswith("Send a key in the header")
    assert missing.headers["WWW-Authenticate"] == 'Bearer realm="Dramatis"'
    invalid = send_fetch(entry_point, stage, AUTHORIZATION=bearer(generate_key_secret()))
    assert problem_json(invalid)["detail"] == "This key is not valid: it is unknown, expired or revoked."
    assert invalid.headers["WWW-Authenticate"].endswith('error="invalid_token"')


@both_entry_points
def test_what_is_too_long_is_named(stage, entry_point):
    for options, name in (
        ({"query": "label=" + "x" * 4_000}, "The query has"),
        ({"ACCEPT": "x" * 4_001}, "The header Accept has"),
        ({"IF_NONE_MATCH": "x" * 4_001}, "The header If-None-Match has"),
    ):
        response = send_fetch(entry_point, stage, **options)
        assert response.status == 400
        assert problem_json(response)["detail"].startswith(name)


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

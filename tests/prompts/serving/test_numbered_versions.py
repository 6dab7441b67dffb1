"""Fetches of a version by its number: only what the label has pointed to, within the scopes of the key."""

import json

import pytest

from personas.api_keys.services import create_key, revoke_key
from personas.records.services import archive_record
from prompts.evidence.erasure.services import erase_record
from prompts.evidence.replay.services import replay_entry
from prompts.models import LabelMove, LedgerEntry, PromptVersion
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.labels.services import move_label
from prompts.serving import resolve
from tests.factories import BY, make_channel, make_memory
from tests.prompts.serving.fetch_stage import (
    ENTRY_POINTS,
    FetchResponse,
    fetch_by_fast_path,
    problem_json,
    send_fetch,
)
from tests.prompts.serving.serving_stage import Stage, make_stage

pytestmark = pytest.mark.django_db


@pytest.fixture
def stage(workspace) -> Stage:
    """Production has pointed to versions 1 to 3 in turn."""
    stage = make_stage(workspace)
    stage.edit("Be bold.")
    stage.edit("Be calm.")
    return stage


def fetch_version(stage: Stage, number: object, **options: str) -> FetchResponse:
    query = "&".join([f"version={number}", *[f"{name}={value}" for name, value in options.items()]])
    return send_fetch(fetch_by_fast_path, stage, query=query)


def point_beta_at_the_second_version(stage: Stage) -> None:
    version = PromptVersion.objects.in_workspace(stage.workspace).get(number=2)
    move_label(stage.prompt, "beta", version, expected=None, by=BY)


def test_versions_of_the_label_are_served_and_recorded(stage):
    texts = []
    for entry_point in ENTRY_POINTS:
        for number in (1, 2, 3):
            response = send_fetch(entry_point, stage, query=f"version={number}")
            document = json.loads(response.body)
            assert (response.status, document["version"]) == (200, number)
            assert (document["label"], document["as_of"]) == ("production", None)
            assert response.headers["Dramatis-Version"] == str(number)
            texts.append(document["text"])
    assert ["Be brave." in text for text in texts] == [True, False, False] * 2
    assert [row.label for row in stage.rows] == ["production@v1", "production@v2", "production@v3"] * 2
    numbers = {row.version_id: row.version.number for row in stage.rows}
    assert [numbers[row.version_id] for row in stage.rows] == [1, 2, 3] * 2
    assert replay_entry(stage.workspace, stage.rows[0].pk).text == texts[0]


def test_the_text_and_a_304_work_with_a_version(stage):
    etag = fetch_version(stage, 1).headers["ETag"]
    known = send_fetch(fetch_by_fast_path, stage, query="version=1", IF_NONE_MATCH=etag)
    assert (known.status, known.headers["Dramatis-Version"]) == (304, "1")
    address = "/api/v1/agents/pilot/channels/deck/prompt.md"
    assert b"Be brave." in send_fetch(fetch_by_fast_path, stage, path=address, query="version=1").body


def test_a_version_that_the_label_never_pointed_to_is_not_found(stage):
    point_beta_at_the_second_version(stage)
    assert fetch_version(stage, 2, label="beta").status == 200
    for number, label in [(1, "beta"), (3, "beta"), (4, "production"), (1, "gamma")]:
        response = fetch_version(stage, number, label=label)
        assert response.status == 404, (number, label)
        assert problem_json(response)["code"] == "not_found"
        assert f"has never pointed to version {number}" in problem_json(response)["detail"]
    assert fetch_version(stage, 1, label="latest").status == 200
    assert len(stage.rows) == 2


def test_a_version_with_a_time_is_served_if_the_label_pointed_to_it_then(stage):
    """An auditor's question: was version 2 in production at this time?"""
    moves = LabelMove.objects.in_workspace(stage.workspace).filter(label="production").order_by("sequence")
    times = [move.at.strftime("%Y-%m-%dT%H:%M:%S.%fZ") for move in moves]
    for entry_point in ENTRY_POINTS:
        response = send_fetch(entry_point, stage, query=f"version=2&at={times[1]}")
        assert (response.status, json.loads(response.body)["version"]) == (200, 2)
        assert json.loads(response.body)["as_of"] is not None
        other = send_fetch(entry_point, stage, query=f"version=2&at={times[0]}")
        assert (other.status, problem_json(other)["code"]) == (404, "not_found")
        assert "pointed to version 1 at that time, not to version 2" in problem_json(other)["detail"]
    assert [row.label for row in stage.rows] == [f"production@{times[1][:19]}Z"] * len(ENTRY_POINTS)
    assert fetch_version(stage, 3, at=times[2], label="latest").status == 200
    assert fetch_version(stage, 1, at="2019-01-01T00:00:00Z").status == 404
    assert fetch_version(stage, 1, at="2999-01-01T00:00:00Z").status == 404


@pytest.mark.planted
def test_a_version_that_is_not_compared_with_the_time_is_detected(stage, monkeypatch):
    monkeypatch.setattr(resolve, "check_version_number", lambda *_: None)
    with pytest.raises(AssertionError):
        test_a_version_with_a_time_is_served_if_the_label_pointed_to_it_then(stage)


@pytest.mark.planted
def test_a_missing_check_of_the_label_is_detected(stage, monkeypatch):
    monkeypatch.setattr(resolve, "LATEST", "beta")
    with pytest.raises(AssertionError):
        test_a_version_that_the_label_never_pointed_to_is_not_found(stage)


def test_the_scopes_of_the_key_hold(stage):
    point_beta_at_the_second_version(stage)
    key, secret = create_key(stage.workspace, "Beta", {"labels": ["beta"]}, by=BY)
    limited = Stage(stage.workspace, stage.agent, key, secret)
    assert fetch_version(limited, 2, label="beta").status == 200
    assert fetch_version(limited, 1, label="beta").status == 404
    assert fetch_version(limited, 2).status == 403
    assert fetch_version(limited, 2, label="latest").status == 403
    make_channel(stage.workspace, "mast")
    other, other_secret = create_key(stage.workspace, "Mast", {"channels": ["mast"]}, by=BY)
    assert fetch_version(Stage(stage.workspace, stage.agent, other, other_secret), 2).status == 403
    revoke_key(key, by=BY)
    assert fetch_version(limited, 2, label="beta").status == 401


def test_anelsewhere_has_its_own_versions(stage, elsewhere):
    foreign = make_stage(elsewhere, "Be sly.")
    assert b"Be sly." in fetch_version(foreign, 1).body
    assert fetch_version(foreign, 2).status == 404
    assert fetch_version(stage, 2).status == 200
    assert LedgerEntry.objects.in_workspace(elsewhere).count() == 1


def test_an_archived_agent_is_not_served_by_version(stage):
    assert fetch_version(stage, 1).status == 200
    archive_record(stage.agent, by=BY)
    rebuild_agents(stage.workspace, [stage.agent.pk])
    assert fetch_version(stage, 1).status == 404


def test_an_erased_version_is_gone(stage):
    memory = make_memory(stage.workspace, "Lives in Oslo.", agent=stage.agent)
    rebuild_agents(stage.workspace, [stage.agent.pk])
    assert b"Oslo" in fetch_version(stage, 4).body
    erase_record(memory, reason="They asked for it.", by=BY)
    response = fetch_version(stage, 4)
    assert (response.status, problem_json(response)["code"]) == (410, "erased")
    assert fetch_version(stage, 1).status == 200


@pytest.mark.parametrize(
    "query",
    [
        *("version=", "version=0", "version=-1", "version=1.0", "version=one", "version=%C2%B2"),
        *("version=2147483648", "version=" + "1" * 400, "version=one&at=2026-03-07T14:55:05Z"),
    ],
)
def test_an_invalid_version_is_rejected(query, stage):
    response = send_fetch(fetch_by_fast_path, stage, query=query)
    assert response.status == 422
    assert [error["parameter"] for error in problem_json(response)["errors"]] == ["version"]
    assert stage.rows == []


def test_a_fetch_by_number_does_not_change_what_others_get(stage):
    assert json.loads(send_fetch(fetch_by_fast_path, stage).body)["version"] == 3
    assert json.loads(fetch_version(stage, 1).body)["version"] == 1
    assert json.loads(send_fetch(fetch_by_fast_path, stage).body)["version"] == 3

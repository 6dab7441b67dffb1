"""Warnings describe the served version, and those of the latest one follow its records."""

import json
from datetime import datetime
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from personas.api_keys.services import create_key
from personas.models import Agent
from personas.records.services import edit_record
from prompts.models import PromptLabel, PromptVersion
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.labels.services import roll_back
from prompts.serving import services
from tests.factories import BY, make_soul
from tests.prompts.serving.serving_stage import Stage, make_stage
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
NO_PLACE_FOR_SOUL = "The layout does not use soul."


def set_stage(shared: SharedCast) -> Any:
    return make_stage(shared.workspace)


@pytest.fixture
def stage(props: Stage) -> Stage:
    return props


def warnings(stage: Stage, **parameters: str) -> list[str]:
    answer = Client().get(
        "/api/v1/agents/pilot/channels/deck/prompt",
        parameters,
        HTTP_AUTHORIZATION=f"Bearer {stage.secret}",
    )
    data = json.loads(answer.content)
    assert answer.status_code == 200, data
    listed: list[str] = data["warnings"]
    return listed


def call(stage: Stage, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = Client().post(
        f"/api/v1/{path}",
        json.dumps(body),
        content_type="application/json",
        HTTP_AUTHORIZATION=f"Bearer {stage.secret}",
    )
    data: dict[str, Any] = json.loads(answer.content)
    assert answer.status_code == 200, data
    return data


def edit_agent(stage: Stage, **values: Any) -> None:
    agent = Agent.objects.in_workspace(stage.workspace).get(pk=stage.agent.pk)
    edit_record(agent, values, expected=agent.revision, by=BY)
    rebuild_agents(stage.workspace, [agent.pk])


def count_versions(stage: Stage) -> int:
    return PromptVersion.objects.in_workspace(stage.workspace).count()


@pytest.mark.slow
def test_a_record_that_loses_or_gains_its_place_is_reported_without_a_new_version(stage):
    stage.change_layout("ptc")
    assert NO_PLACE_FOR_SOUL in warnings(stage)
    versions = count_versions(stage)
    edit_agent(stage, soul=None)
    assert NO_PLACE_FOR_SOUL not in warnings(stage)
    edit_agent(stage, soul=make_soul(stage.workspace, "Bold", text="Be bold."))
    assert NO_PLACE_FOR_SOUL in warnings(stage)
    assert count_versions(stage) == versions


def test_an_earlier_version_is_served_with_its_own_warnings(stage):
    stage.change_layout("ptc", instructions="First.")
    edit_agent(stage, instructions="Second {{name}}.")
    placeholder = "instructions: there is no value for {{name}}"
    assert {placeholder, NO_PLACE_FOR_SOUL} <= set(warnings(stage))
    roll_back([stage.prompt], by=BY, note="Too early.")
    assert placeholder not in warnings(stage)
    assert placeholder in warnings(stage, label="latest")
    edit_agent(stage, soul=None)
    assert NO_PLACE_FOR_SOUL in warnings(stage)
    assert NO_PLACE_FOR_SOUL not in warnings(stage, label="latest")


def prepare_other_layout(stage: Stage) -> datetime:
    """Let production stay at a version in the layout dramatis, and build the latest one in pi.

    The key is for both labels: other bot keys do not get the latest version of a reviewed agent.
    """
    scopes = {"labels": ["production", "latest"]}
    stage.secret = create_key(stage.workspace, "Test bot", scopes, by=BY)[1]
    edit_agent(stage, release_policy="reviewed")
    assert warnings(stage) == []
    before = timezone.now()
    stage.change_layout("pi")
    return before


def test_a_layout_that_is_not_released_gives_no_warning(stage):
    before = prepare_other_layout(stage).isoformat().replace("+00:00", "Z")
    number = PromptLabel.objects.in_workspace(stage.workspace).get(name="production").version.number
    assert NO_PLACE_FOR_SOUL in warnings(stage, label="latest")
    assert warnings(stage) == []
    assert warnings(stage, version=str(number)) == []
    assert warnings(stage, at=before) == []
    assert call(stage, "agents/pilot/channels/deck/prompt:render", {"append": "Be brief."})["warnings"] == []
    limits = {"limits": {"total": 100_000}}
    assert call(stage, "agents/pilot/channels/deck/prompt:render", limits)["warnings"] == []
    prompts = [
        {"agent": "pilot", "channel": "deck"},
        {"agent": "pilot", "channel": "deck", "label": "latest"},
    ]
    [production, latest] = call(stage, "prompts:batchGet", {"prompts": prompts})["results"]
    assert NO_PLACE_FOR_SOUL not in json.dumps(production)
    assert NO_PLACE_FOR_SOUL in json.dumps(latest)


@pytest.mark.planted
def test_warnings_of_the_last_build_are_detected(stage, monkeypatch):
    def combine_current(own, current, **_) -> tuple[str, ...]:
        return (*own.text, *current.withheld, *current.lost) if current else ()

    monkeypatch.setattr(services, "combine_warnings", combine_current)
    with pytest.raises(AssertionError):
        test_a_layout_that_is_not_released_gives_no_warning(stage)

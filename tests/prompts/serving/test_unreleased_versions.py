"""The label `latest` of a reviewed agent: only for bot keys whose labels include it."""

import pytest

from personas.actors import Actor
from personas.api_keys.format import ADMIN
from personas.api_keys.services import create_key
from personas.models import Agent
from personas.records.services import edit_record
from prompts.models import PromptVersion
from prompts.serving.errors import OutOfScope
from tests.factories import BY
from tests.prompts.serving.serving_stage import Stage, fetch, make_stage

pytestmark = pytest.mark.django_db
DRAFT = "Be reckless."


@pytest.fixture
def stage(workspace) -> Stage:
    """The agent's releases are not reviewed, and its latest version is cached."""
    stage = make_stage(workspace)
    stage.fetch(label="latest")
    return stage


def change_policy(stage: Stage, policy: str, **values: str) -> None:
    agent = Agent.objects.in_workspace(stage.workspace).get(pk=stage.agent.pk)
    edit_record(agent, {"release_policy": policy, **values}, expected=agent.revision, by=BY)


def assert_refused(stage: Stage, secret: str = "") -> None:
    number = PromptVersion.objects.in_workspace(stage.workspace).count()
    rows = len(stage.rows)
    for version in (None, number):
        with pytest.raises(OutOfScope, match="only if it is limited to labels that include “latest”"):
            fetch(secret or stage.secret, label="latest", cache=stage.cache, version=version)
    assert len(stage.rows) == rows


def test_a_bot_key_gets_the_latest_version_of_an_agent_without_reviews(stage):
    stage.edit("Be bold.")
    assert "Be bold." in stage.fetch(label="latest").text


def test_with_reviews_a_bot_key_gets_only_production(stage):
    change_policy(stage, "reviewed")
    # The text is the same, so only the policy tells that the cached resolution is outdated.
    assert_refused(stage)
    stage.edit(DRAFT)
    assert_refused(stage)
    assert DRAFT not in stage.fetch().text


def test_a_lifted_review_applies_until_production_has_the_latest_text(stage, alice):
    change_policy(stage, "reviewed")
    stage.edit(DRAFT)
    agent = Agent.objects.in_workspace(stage.workspace).get(pk=stage.agent.pk)
    values = {"release_policy": "automatic", "reason": "No reviewer is left."}
    edit_record(agent, values, expected=agent.revision, by=Actor.person(alice))
    assert stage.prompt.is_review_kept
    assert_refused(stage)


@pytest.mark.parametrize(
    ("labels", "is_served"), [(["latest"], True), (["production", "latest"], True), (["production"], False)]
)
def test_a_key_that_is_limited_to_latest_gets_drafts(stage, labels, is_served):
    change_policy(stage, "reviewed")
    stage.edit(DRAFT)
    secret = create_key(stage.workspace, "Test bot", {"labels": labels}, by=BY)[1]
    if is_served:
        assert DRAFT in fetch(secret, label="latest").text
    else:
        with pytest.raises(OutOfScope, match="limited to specific labels"):
            fetch(secret, label="latest")


def test_an_admin_key_reads_drafts_as_its_member_does(stage, alice):
    change_policy(stage, "reviewed")
    stage.edit(DRAFT)
    secret = create_key(stage.workspace, "Desk", {}, by=Actor.person(alice), kind=ADMIN)[1]
    assert DRAFT in fetch(secret, label="latest").text

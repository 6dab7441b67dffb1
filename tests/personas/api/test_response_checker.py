"""The checking API client detects responses that differ from the OpenAPI document."""

from typing import Any

import pytest
from django.test import Client

from personas.api.problems import Problem, ProblemError
from personas.models import Workspace
from skills.library import agent_api
from tests.api_client import Api
from tests.factories import make_agent, make_skill
from tests.personas.api.response_checker import TrueApi

pytestmark = pytest.mark.django_db


def checked(api: Api) -> TrueApi:
    return TrueApi(api.secret, Client(raise_request_exception=False))


def test_a_field_that_was_not_published_is_noticed(
    admin: Api, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_skill(workspace, "tea", agents=[make_agent(workspace, "mira")])
    checked(admin).get("agents/mira/skills")
    agent_skill_json = agent_api.agent_skill_json

    def chatty(skill: Any) -> dict[str, Any]:
        return agent_skill_json(skill) | {"secret": 1}

    monkeypatch.setattr(agent_api, "agent_skill_json", chatty)
    with pytest.raises(AssertionError, match="secret"):
        checked(admin).get("agents/mira/skills")


def test_a_status_that_was_not_published_is_noticed(
    admin: Api, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_agent(workspace, "mira")

    def refuse(*_: Any) -> None:
        raise ProblemError(Problem(410, "erased", "Gone."))

    monkeypatch.setattr(agent_api, "get_effective_context", refuse)
    with pytest.raises(AssertionError, match="Gone"):
        checked(admin).get("agents/mira/skills")

"""Fixtures of prompts: two agents on one channel, keys, and checks of responses against their schemas."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.urls import Resolver404, resolve

from personas.api.validation import build_validator
from personas.api_keys.format import ADMIN, BOT
from personas.models import Agent, Soul, User, Workspace
from personas.records.services import edit_record
from prompts.models import AgentPrompt, PromptVersion
from prompts.publishing.builds.services import rebuild_agents
from prompts.serving.services import ServedPrompt
from tests.api_client import V1, Api
from tests.factories import BY, make_agent, make_channel, make_soul
from tests.prompts.serving.serving_stage import fetch


@dataclass
class Deck:
    """Two agents, pilot and cook, with one soul; editing it creates a version of each prompt."""

    workspace: Workspace
    soul: Soul
    agents: list[Agent]

    def reword(self, text: str) -> None:
        self.soul.refresh_from_db()
        edit_record(self.soul, {"text": text}, expected=self.soul.revision, by=BY)
        self.build()

    def build(self) -> None:
        """Rebuild the prompts: a test inside a transaction never commits, so the signal has no effect."""
        rebuild_agents(self.workspace, [agent.pk for agent in self.agents])

    def prompt(self, agent: str = "pilot") -> AgentPrompt:
        rows = AgentPrompt.objects.in_workspace(self.workspace).select_related("agent", "channel", "latest")
        return rows.get(agent__slug=agent, channel__slug="deck")

    def version(self, number: int, agent: str = "pilot") -> PromptVersion:
        rows = PromptVersion.objects.in_workspace(self.workspace).select_related("prompt")
        return rows.get(prompt=self.prompt(agent), number=number)

    def fetch(self, api: Api, agent: str = "pilot", **options: Any) -> ServedPrompt:
        return fetch(api.secret, agent, "deck", **options)


def make_deck(workspace: Workspace, **values: Any) -> Deck:
    channel, soul = make_channel(workspace, "deck"), make_soul(workspace, text="Be brave.")
    agents = [
        make_agent(workspace, slug, soul=soul, channels=[channel], **values) for slug in ("pilot", "cook")
    ]
    deck = Deck(workspace, soul, agents)
    deck.build()
    return deck


@pytest.fixture(name="deck")
def a_deck(workspace: Workspace) -> Deck:
    return make_deck(workspace)


@pytest.fixture(name="elsewhere_deck")
def a_foreign_deck(elsewhere: Workspace) -> Deck:
    deck = make_deck(elsewhere)
    deck.reword("Be foreign.")
    return deck


@pytest.fixture(name="narrow")
def a_narrow_key(key_for: Callable[..., Api], deck: Deck, alice: User) -> Api:
    """An admin key of Alice, limited to the cook."""
    return key_for(deck.workspace, alice, agents=["cook"])


@pytest.fixture(name="narrow_bot")
def a_narrow_bot(key_for: Callable[..., Api], deck: Deck, alice: User) -> Api:
    return key_for(deck.workspace, alice, BOT, agents=["cook"])


@pytest.fixture(name="scoped")
def keys_of_alice(key_for: Callable[..., Api], deck: Deck, alice: User) -> Callable[..., Api]:
    """Return a factory of keys of Alice with these scopes."""

    def make(kind: str = ADMIN, **scopes: Any) -> Api:
        return key_for(deck.workspace, alice, kind, **scopes)

    return make


@pytest.fixture(name="abroad")
def a_foreign_bot(key_for: Callable[..., Api], elsewhere_deck: Deck, mallory: User) -> Api:
    return key_for(elsewhere_deck.workspace, mallory, BOT)


def good(answer: Any, status: int = 200) -> Any:
    """Return the JSON of a successful response after validating it against the schema of its operation."""
    assert answer.status_code == status, answer.content
    request = answer.wsgi_request
    try:
        match = resolve(request.path)
    except Resolver404:
        raise AssertionError(f"There is no address {request.path}.") from None
    operation = match.func.cls.operations[request.method]  # type: ignore[attr-defined]  # a view of the base
    body = answer.json()
    errors = [
        f"{error.json_path}: {error.message}" for error in build_validator(operation.answer).iter_errors(body)
    ]
    assert not errors, errors
    assert answer.status_code in {operation.status, 201 if operation.can_create else operation.status}
    return body


def problem(answer: Any, status: int, code: str = "") -> Any:
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert not code or body["code"] == code, body
    assert V1 in body["type"]
    return body

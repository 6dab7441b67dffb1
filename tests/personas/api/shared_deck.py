"""The deck and its users, created once per module: import these fixtures in place of the common ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from personas.models import Agent, Soul, User, Workspace
from tests.factories import join, make_user, make_workspace
from tests.module_fixtures import rows_of_a_module
from tests.personas.api.prompts_stage import Deck, make_deck


@dataclass(frozen=True)
class SharedRowIds:
    """Ids of the shared rows; each test loads them again."""

    alice: int
    bob: int
    workspace: int
    soul: int
    agents: list[int]


@pytest.fixture(scope="module")
def ashore(django_db_setup: None, django_db_blocker: Any) -> Iterator[SharedRowIds]:
    with rows_of_a_module(django_db_blocker):
        with django_db_blocker.unblock():
            alice, bob = make_user("Alice"), make_user("Bob")
            workspace = make_workspace("Harbour", owner=alice)
            join(workspace, bob)
            deck = make_deck(workspace)
            agents = [agent.pk for agent in deck.agents]
            built = SharedRowIds(alice.pk, bob.pk, workspace.pk, deck.soul.pk, agents)
        yield built


@pytest.fixture(name="alice")
def shared_alice(ashore: SharedRowIds, db: None) -> User:
    return User.objects.get(pk=ashore.alice)


@pytest.fixture(name="bob")
def shared_bob(ashore: SharedRowIds, db: None) -> User:
    return User.objects.get(pk=ashore.bob)


@pytest.fixture(name="workspace")
def shared_workspace(ashore: SharedRowIds, db: None) -> Workspace:
    return Workspace.objects.get(pk=ashore.workspace)


@pytest.fixture(name="deck")
def shared_deck(ashore: SharedRowIds, workspace: Workspace) -> Deck:
    soul = Soul.objects.in_workspace(workspace).get(pk=ashore.soul)
    agents = Agent.objects.in_workspace(workspace).in_bulk(ashore.agents)
    return Deck(workspace, soul, [agents[key] for key in ashore.agents])

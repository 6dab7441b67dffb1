"""Module-scoped fixtures for tests of pages: users, sessions and the rows of the module's `set_stage`.

Each test runs in a savepoint and on copies of the objects, so it may change both.
"""

from collections.abc import Iterator
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from personas.models import User, Workspace
from tests.factories import join, make_user, make_workspace, signed_in
from tests.module_fixtures import commits_heard, rows_of_a_module


class Standing(SimpleNamespace):
    """Alice, Bob, their workspace and their sessions; the module's `set_stage` adds further objects."""

    alice: User
    bob: User
    workspace: Workspace
    sessions: dict[str, str]

    def let_in(self, name: str, user: User) -> None:
        client = signed_in(user)
        self.sessions[name] = client.cookies[settings.SESSION_COOKIE_NAME].value

    def client(self, name: str) -> Client:
        client = Client()
        client.cookies[settings.SESSION_COOKIE_NAME] = self.sessions[name]
        return client


def make_cast() -> Standing:
    alice, bob = make_user("Alice"), make_user("Bob")
    workspace = make_workspace("Harbour", owner=alice)
    join(workspace, bob)
    standing = Standing(alice=alice, bob=bob, workspace=workspace, sessions={})
    standing.let_in("alice", alice)
    standing.let_in("bob", bob)
    return standing


@pytest.fixture(scope="module")
def standing(
    request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: Any
) -> Iterator[Standing]:
    with rows_of_a_module(django_db_blocker):
        with django_db_blocker.unblock(), commits_heard():
            cast = make_cast()
            request.module.set_stage(cast)
        yield cast


@pytest.fixture(name="stage")
def a_copy_of_the_stage(standing: Standing, db: None) -> Standing:
    return deepcopy(standing)


@pytest.fixture(name="alice")
def standing_alice(stage: Standing) -> User:
    return stage.alice


@pytest.fixture(name="bob")
def standing_bob(stage: Standing) -> User:
    return stage.bob


@pytest.fixture(name="workspace")
def standing_workspace(stage: Standing) -> Workspace:
    return stage.workspace


@pytest.fixture(name="as_alice")
def alice_logged_in(stage: Standing) -> Client:
    return stage.client("alice")


@pytest.fixture(name="as_bob")
def bob_logged_in(stage: Standing) -> Client:
    return stage.client("bob")


@pytest.fixture
def commits_are_heard(stage: Standing) -> Iterator[None]:
    """Run commit hooks, for modules whose services build prompts."""
    with commits_heard():
        yield

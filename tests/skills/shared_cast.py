"""Module-scoped users and workspaces: import these fixtures instead of the common ones.

Every test gets deep copies, so changes to the objects are undone, as the rollback undoes changes to rows.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client

from personas.models import User, Workspace
from tests.factories import join, make_user, make_workspace, signed_in
from tests.module_fixtures import rows_of_a_module


@dataclass(frozen=True)
class Cast:
    """The users and workspaces of a module, and signed-in test clients."""

    alice: User
    bob: User
    mallory: User
    workspace: Workspace
    elsewhere: Workspace
    browsers: dict[str, Client]


def make_cast() -> Cast:
    alice, bob, mallory = make_user("Alice"), make_user("Bob"), make_user("Mallory")
    workspace = make_workspace("Harbour", owner=alice)
    join(workspace, bob)
    elsewhere = make_workspace("Elsewhere", owner=mallory)
    browsers = {user.name: signed_in(user) for user in (alice, bob, mallory)}
    return Cast(alice, bob, mallory, workspace, elsewhere, browsers)


def browser_like(browser: Client) -> Client:
    """Return a new client with the same cookies."""
    another = Client()
    another.cookies = deepcopy(browser.cookies)
    return another


# autouse: otherwise the order of the tests would decide whether a test finds these rows.
@pytest.fixture(name="cast", scope="module", autouse=True)
def shared_cast(django_db_setup: None, django_db_blocker: Any) -> Iterator[Cast]:
    with rows_of_a_module(django_db_blocker):
        with django_db_blocker.unblock():
            cast = make_cast()
        yield cast


@pytest.fixture(name="alice")
def shared_alice(cast: Cast, db: None) -> User:
    return deepcopy(cast.alice)


@pytest.fixture(name="bob")
def shared_bob(cast: Cast, db: None) -> User:
    return deepcopy(cast.bob)


@pytest.fixture(name="mallory")
def shared_mallory(cast: Cast, db: None) -> User:
    return deepcopy(cast.mallory)


@pytest.fixture(name="workspace")
def shared_workspace(cast: Cast, db: None) -> Workspace:
    return deepcopy(cast.workspace)


@pytest.fixture(name="elsewhere")
def shared_elsewhere(cast: Cast, db: None) -> Workspace:
    return deepcopy(cast.elsewhere)


@pytest.fixture(name="as_alice")
def shared_as_alice(cast: Cast, db: None) -> Client:
    return browser_like(cast.browsers["Alice"])


@pytest.fixture(name="as_bob")
def shared_as_bob(cast: Cast, db: None) -> Client:
    return browser_like(cast.browsers["Bob"])


@pytest.fixture(name="as_mallory")
def shared_as_mallory(cast: Cast, db: None) -> Client:
    return browser_like(cast.browsers["Mallory"])

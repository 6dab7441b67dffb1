"""Users, workspaces and sessions created once per module: import these fixtures instead of the common ones.

A module may define `set_stage(shared)`, which adds rows: its result is the fixture `props`, and attributes
that it sets are attributes of the fixture `stage`. Each test runs in a savepoint and on copies of the
objects, so it may change both. `HAS_ELSEWHERE = False` leaves out Mallory and the second workspace.
"""

from collections.abc import Iterator
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from personas.models import User, Workspace
from tests.factories import ReviewingClient, join, make_user, make_workspace, signed_in
from tests.module_fixtures import commits_heard, rows_of_a_module


class SharedCast(SimpleNamespace):
    """Alice owns Harbour, Bob is its member, Mallory owns Elsewhere."""

    alice: User
    bob: User
    mallory: User
    workspace: Workspace
    elsewhere: Workspace
    sessions: dict[str, str]
    props: Any

    def sign_in(self, name: str, user: User) -> None:
        self.sessions[name] = signed_in(user).cookies[settings.SESSION_COOKIE_NAME].value

    def client(self, name: str) -> Client:
        """Return a new test client with the session of this user."""
        client = ReviewingClient()
        client.cookies[settings.SESSION_COOKIE_NAME] = self.sessions[name]
        return client


def make_cast(*, has_elsewhere: bool) -> SharedCast:
    alice, bob = make_user("Alice"), make_user("Bob")
    workspace = make_workspace("Harbour", owner=alice)
    join(workspace, bob)
    cast = SharedCast(alice=alice, bob=bob, workspace=workspace, sessions={}, props=None)
    cast.sign_in("alice", alice)
    cast.sign_in("bob", bob)
    if has_elsewhere:
        cast.mallory = make_user("Mallory")
        cast.elsewhere = make_workspace("Elsewhere", owner=cast.mallory)
        cast.sign_in("mallory", cast.mallory)
    return cast


# autouse: otherwise the order of the tests would decide whether a test finds these rows.
@pytest.fixture(name="cast", scope="module", autouse=True)
def shared_cast(
    request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: Any
) -> Iterator[SharedCast]:
    with rows_of_a_module(django_db_blocker):
        with django_db_blocker.unblock(), commits_heard():
            cast = make_cast(has_elsewhere=getattr(request.module, "HAS_ELSEWHERE", True))
            if set_stage := getattr(request.module, "set_stage", None):
                cast.props = set_stage(cast)
        yield cast


@pytest.fixture(name="stage")
def shared_stage(cast: SharedCast, db: None) -> SharedCast:
    return deepcopy(cast)


@pytest.fixture(name="alice")
def shared_alice(cast: SharedCast, db: None) -> User:
    return deepcopy(cast.alice)


@pytest.fixture(name="bob")
def shared_bob(cast: SharedCast, db: None) -> User:
    return deepcopy(cast.bob)


@pytest.fixture(name="mallory")
def shared_mallory(cast: SharedCast, db: None) -> User:
    return deepcopy(cast.mallory)


@pytest.fixture(name="workspace")
def shared_workspace(cast: SharedCast, db: None) -> Workspace:
    return deepcopy(cast.workspace)


@pytest.fixture(name="elsewhere")
def shared_elsewhere(cast: SharedCast, db: None) -> Workspace:
    return deepcopy(cast.elsewhere)


@pytest.fixture(name="as_alice")
def shared_as_alice(cast: SharedCast, db: None) -> Client:
    return cast.client("alice")


@pytest.fixture(name="as_bob")
def shared_as_bob(cast: SharedCast, db: None) -> Client:
    return cast.client("bob")


@pytest.fixture(name="as_mallory")
def shared_as_mallory(cast: SharedCast, db: None) -> Client:
    return cast.client("mallory")


@pytest.fixture(name="props")
def shared_props(cast: SharedCast, db: None) -> Any:
    return deepcopy(cast.props)


@pytest.fixture(name="commits")
def shared_commits(cast: SharedCast, db: None) -> Iterator[None]:
    """Run on_commit hooks at the end of each service call, so that prompts are built."""
    with commits_heard():
        yield

"""Module-scoped users and workspace: import these fixtures instead of the common ones.

A module may define `set_stage(workspace)`; each test gets a copy of its result as the fixture `props`.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, NamedTuple

import pytest

from personas.models import User, Workspace
from tests.factories import join, make_user, make_workspace
from tests.module_fixtures import commits_heard, rows_of_a_module


class Cast(NamedTuple):
    """The created objects; tests get copies, because a savepoint rolls back rows and not objects."""

    alice: User
    bob: User
    workspace: Workspace
    props: Any


def make_cast(set_stage: Any) -> Cast:
    alice, bob = make_user("Alice"), make_user("Bob")
    workspace = make_workspace("Harbour", owner=alice)
    join(workspace, bob)
    return Cast(alice, bob, workspace, set_stage(workspace))


@pytest.fixture(scope="module")
def cast(request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: Any) -> Iterator[Cast]:
    with rows_of_a_module(django_db_blocker):
        with django_db_blocker.unblock(), commits_heard():
            created = make_cast(getattr(request.module, "set_stage", lambda _: None))
        yield created


@pytest.fixture(name="alice")
def shared_alice(cast: Cast, db: None) -> User:
    return deepcopy(cast.alice)


@pytest.fixture(name="bob")
def shared_bob(cast: Cast, db: None) -> User:
    return deepcopy(cast.bob)


@pytest.fixture(name="workspace")
def shared_workspace(cast: Cast, db: None) -> Workspace:
    return deepcopy(cast.workspace)


@pytest.fixture(name="props")
def shared_props(cast: Cast, db: None) -> Any:
    return deepcopy(cast.props)


@pytest.fixture(name="commits")
def shared_commits(cast: Cast, db: None) -> Iterator[None]:
    """Run on_commit hooks at the end of each service call, so that prompts are built."""
    with commits_heard():
        yield

"""Module-scoped users and two workspaces: import these fixtures instead of the common ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from personas.models import User, Workspace
from tests.factories import join, make_user, make_workspace
from tests.module_fixtures import rows_of_a_module


@dataclass(frozen=True)
class House:
    """Primary keys of the rows; each test loads them again."""

    alice: int
    bob: int
    mallory: int
    workspace: int
    elsewhere: int


@pytest.fixture(name="house", scope="module")
def the_house(django_db_setup: None, django_db_blocker: Any) -> Iterator[House]:
    with rows_of_a_module(django_db_blocker):
        with django_db_blocker.unblock():
            alice, bob, mallory = (make_user(name) for name in ("Alice", "Bob", "Mallory"))
            workspace = make_workspace("Harbour", owner=alice)
            join(workspace, bob)
            elsewhere = make_workspace("Elsewhere", owner=mallory)
            built = House(alice.pk, bob.pk, mallory.pk, workspace.pk, elsewhere.pk)
        yield built


@pytest.fixture(name="alice")
def housed_alice(house: House, db: None) -> User:
    return User.objects.get(pk=house.alice)


@pytest.fixture(name="bob")
def housed_bob(house: House, db: None) -> User:
    return User.objects.get(pk=house.bob)


@pytest.fixture(name="mallory")
def housed_mallory(house: House, db: None) -> User:
    return User.objects.get(pk=house.mallory)


@pytest.fixture(name="workspace")
def housed_workspace(house: House, db: None) -> Workspace:
    return Workspace.objects.get(pk=house.workspace)


@pytest.fixture(name="elsewhere")
def housed_elsewhere(house: House, db: None) -> Workspace:
    return Workspace.objects.get(pk=house.elsewhere)

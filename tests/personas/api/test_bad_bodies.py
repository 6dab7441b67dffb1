"""R8: bad input is refused with its reason and costs nothing."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client

from personas.actors import Actor
from personas.api_keys.format import ADMIN
from personas.api_keys.services import create_key
from personas.models import AuditEvent, Memory, Soul, Workspace
from tests.api_client import Api
from tests.factories import make_memory, make_soul, make_task, make_user, make_workspace
from tests.module_fixtures import rows_of_a_module
from tests.personas.api.bad_bodies import BAD, Bad

pytestmark = pytest.mark.django_db
LONGEST = 1.0


@dataclass(frozen=True)
class House:
    """One of what the corpus speaks of: a soul, a task and a memory; and a key to it."""

    workspace: Workspace
    memory: Memory
    api: Api


@pytest.fixture(scope="module")
def house(django_db_setup: None, django_db_blocker: Any) -> Iterator[House]:
    """Built once: what is refused changes nothing, which each test makes sure of."""
    with rows_of_a_module(django_db_blocker):
        with django_db_blocker.unblock():
            alice = make_user("Alice")
            workspace = make_workspace("Harbour", owner=alice)
            _, secret = create_key(workspace, "Key", {}, by=Actor.person(alice), kind=ADMIN)
            api = Api(secret, Client(raise_request_exception=False))
            # The first call of a process loads all addresses; that is nobody's bad request.
            api.get("souls")
            make_soul(workspace, label="There")
            make_task(workspace, steps=[{"title": "One", "is_done": False}])
            memory = make_memory(workspace)
        yield House(workspace, memory, api)


@pytest.mark.promise("R8", "at least 60 bodies")
def test_the_corpus_is_large_and_says_each_thing_once() -> None:
    assert len(BAD) >= 60
    assert [name for name, count in Counter(bad.name for bad in BAD).items() if count > 1] == []


@pytest.mark.promise("R8")
@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_a_bad_request_is_told_what_is_wrong(bad: Bad, house: House) -> None:
    workspace = house.workspace
    events = AuditEvent.objects.in_workspace(workspace).count()
    path, _, odd = bad.path.partition("#")
    more = {"Idempotency_Key": "a b"} if odd else {}
    begun = time.monotonic()
    answer = house.api.call(
        bad.method,
        path.replace("memories/1:", f"memories/{house.memory.pk}:"),
        bad.body,
        content_type=bad.kind,
        **more,
    )
    assert time.monotonic() - begun < LONGEST
    said = answer.json()
    assert answer["Content-Type"] == "application/problem+json"
    assert (answer.status_code, said["code"]) == (bad.status, bad.code), said
    assert said["request_id"] == answer["X-Request-ID"]
    assert said["title"]
    assert said["detail"]
    if bad.where or bad.status == 422:
        assert bad.where in {place for error in said["errors"] for place in places(error)}, said
    assert AuditEvent.objects.in_workspace(workspace).count() == events
    assert [soul.label for soul in Soul.objects.in_workspace(workspace)] == ["There"]


def places(error: dict[str, str]) -> set[str]:
    return {error.get(name, "") for name in ("pointer", "parameter", "header")}

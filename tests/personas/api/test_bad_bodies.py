"""R8: bad input is rejected with a reason, quickly and without effect."""

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
from tests.personas.api.bad_bodies import BAD, BadRequest

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
LONGEST = 1.0


@dataclass(frozen=True)
class House:
    """A workspace with the objects that the corpus names (soul, task, memory) and a key."""

    workspace: Workspace
    memory: Memory
    api: Api


@pytest.fixture(scope="module")
def house(django_db_setup: None, django_db_blocker: Any) -> Iterator[House]:
    """Create the rows once per module: rejected requests change nothing, which each test checks."""
    with rows_of_a_module(django_db_blocker):
        with django_db_blocker.unblock():
            alice = make_user("Alice")
            workspace = make_workspace("Harbour", owner=alice)
            _, secret = create_key(workspace, "Key", {}, by=Actor.person(alice), kind=ADMIN)
            api = Api(secret, Client(raise_request_exception=False))
            # The first request of a process loads all URLs, which must not count as the time of a test.
            api.get("souls")
            make_soul(workspace, name="There")
            make_task(workspace, steps=[{"title": "One", "is_done": False}])
            memory = make_memory(workspace)
        yield House(workspace, memory, api)


def test_the_corpus_is_large_and_has_no_duplicates() -> None:
    assert len(BAD) >= 60
    assert [name for name, count in Counter(bad.name for bad in BAD).items() if count > 1] == []


@pytest.mark.promise("R8", counts="bodies")
@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_a_bad_request_gets_a_problem_with_the_location_of_the_error(
    bad: BadRequest, house: House, record_property: Any
) -> None:
    workspace = house.workspace
    events = AuditEvent.objects.in_workspace(workspace).count()
    path, _, odd = bad.path.partition("#")
    headers = {"Idempotency_Key": "a b"} if odd else {}
    started = time.thread_time()
    answer = house.api.call(
        bad.method,
        path.replace("memories/1:", f"memories/{house.memory.pk}:"),
        bad.body,
        content_type=bad.kind,
        **headers,
    )
    seconds = time.thread_time() - started
    record_property("longest answer", seconds)
    assert seconds < LONGEST
    body = answer.json()
    assert answer["Content-Type"] == "application/problem+json"
    assert (answer.status_code, body["code"]) == (bad.status, bad.code), body
    assert body["request_id"] == answer["X-Request-ID"]
    assert body["title"]
    assert body["detail"]
    if bad.where or bad.status == 422:
        assert bad.where in {place for error in body["errors"] for place in places(error)}, body
    assert AuditEvent.objects.in_workspace(workspace).count() == events
    assert [soul.name for soul in Soul.objects.in_workspace(workspace)] == ["There"]


def places(error: dict[str, str]) -> set[str]:
    return {error.get(name, "") for name in ("pointer", "parameter", "header")}

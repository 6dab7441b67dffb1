"""R8: bad input is refused with its reason and costs nothing."""

import time
from collections import Counter

import pytest

from personas.models import AuditEvent, Memory, Soul, Workspace
from tests.api.bad_bodies import BAD, Bad
from tests.api.conftest import Api
from tests.factories import make_memory, make_soul, make_task

pytestmark = pytest.mark.django_db
LONGEST = 1.0


@pytest.fixture
def memory(workspace: Workspace, admin: Api) -> Memory:
    """One of what the corpus speaks of: a soul, a task and a memory."""
    # The first call of a process loads all addresses; that is nobody's bad request.
    admin.get("souls")
    make_soul(workspace, label="There")
    make_task(workspace, steps=[{"title": "One", "is_done": False}])
    return make_memory(workspace)


@pytest.mark.promise("R8", "at least 60 bodies")
def test_the_corpus_is_large_and_says_each_thing_once() -> None:
    assert len(BAD) >= 60
    assert [name for name, count in Counter(bad.name for bad in BAD).items() if count > 1] == []


@pytest.mark.promise("R8")
@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_a_bad_request_is_told_what_is_wrong(
    bad: Bad, admin: Api, memory: Memory, workspace: Workspace
) -> None:
    events = AuditEvent.objects.in_workspace(workspace).count()
    path, _, odd = bad.path.partition("#")
    more = {"Idempotency_Key": "a b"} if odd else {}
    begun = time.monotonic()
    answer = admin.call(
        bad.method,
        path.replace("memories/1:", f"memories/{memory.pk}:"),
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

"""The order of responsibilities by API."""

import pytest

from personas.models import AuditEvent, Responsibility
from personas.records.services import archive_record
from tests.factories import BY, make_agent, make_responsibility
from tests.shared_cast import (  # noqa: F401  # fixtures
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_elsewhere,
    shared_mallory,
    shared_workspace,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def duties(workspace):
    agent = make_agent(workspace, "pilot")
    return [make_responsibility(agent, title) for title in ("Steer", "Watch", "Log")]


def titles(workspace):
    rows = Responsibility.objects.in_workspace(workspace).filter(archived_at=None).order_by("position")
    return list(rows.values_list("title", flat=True))


def test_responsibilities_are_put_in_order(admin, workspace, duties):
    ids = [duties[2].pk, duties[0].pk, duties[1].pk]
    answer = admin.post("agents/pilot/responsibilities:order", {"ids": ids})
    assert answer.status_code == 200, answer.content
    assert [row["id"] for row in answer.json()["items"]] == ids
    assert [row["position"] for row in answer.json()["items"]] == [0, 1, 2]
    assert titles(workspace) == ["Log", "Steer", "Watch"]
    assert AuditEvent.objects.in_workspace(workspace).filter(verb="moved").count() == 3


def test_the_ids_must_be_all_active_responsibilities(admin, workspace, duties):
    other = make_responsibility(make_agent(workspace, "cook"), "Cook")
    archive_record(duties[2], by=BY)
    own = [duties[1].pk, duties[0].pk]
    for ids in ([own[0]], [*own, duties[2].pk], [*own, other.pk], [*own, 987_654_321], []):
        answer = admin.post("agents/pilot/responsibilities:order", {"ids": ids})
        assert (answer.status_code, answer.json()["code"]) == (409, "refused"), ids
    assert admin.post("agents/pilot/responsibilities:order", {"ids": own}).status_code == 200


def test_a_key_for_one_agent_orders_only_its_responsibilities(key_for, workspace, alice, duties):
    make_agent(workspace, "cook")
    ids = {"ids": [row.pk for row in reversed(duties)]}
    other = key_for(workspace, alice, agents=["cook"])
    assert other.post("agents/pilot/responsibilities:order", ids).status_code == 404
    assert titles(workspace) == ["Steer", "Watch", "Log"]
    own = key_for(workspace, alice, agents=["pilot"])
    assert own.post("agents/pilot/responsibilities:order", ids).status_code == 200

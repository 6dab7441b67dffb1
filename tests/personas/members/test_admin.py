"""Django admin: the same services as the pages, for superusers only."""

import pytest

from personas.models import AuditEvent, Memory, Soul
from tests.factories import make_agent, make_memory, make_operator, make_soul, signed_in_operator


@pytest.fixture
def as_operator(db):
    return signed_in_operator(make_operator())


def edit(browser, soul, **values):
    fields = {"name": soul.name, "text": soul.text, "expected": soul.revision} | values
    return browser.post(f"/operator/personas/soul/{soul.pk}/change/", fields)


def test_an_operators_edit_is_a_revision_with_their_name(workspace, as_operator):
    soul = make_soul(workspace)
    assert edit(as_operator, soul, text="Changed.").status_code == 302
    soul = Soul.objects.in_workspace(workspace).get()
    assert (soul.text, soul.revision) == ("Changed.", 2)
    assert AuditEvent.objects.in_workspace(workspace).latest("pk").actor_label == "operator Otto"


def test_a_concurrent_edit_by_an_operator_is_rejected(workspace, as_operator):
    soul = make_soul(workspace)
    edit(as_operator, soul, text="First.")
    answer = edit(as_operator, soul, text="Second.")
    assert "changed this after you opened it" in answer.content.decode()
    assert Soul.objects.in_workspace(workspace).get().text == "First."


def test_archiving_what_is_in_use_is_refused_with_a_reason(workspace, as_operator):
    soul = make_soul(workspace)
    make_agent(workspace, "pilot", soul=soul)
    fields = {"action": "archive", "_selected_action": [soul.pk]}
    answer = as_operator.post("/operator/personas/soul/", fields, follow=True)
    assert "In use by Pilot" in answer.content.decode()
    assert not Soul.objects.in_workspace(workspace).get().is_archived


def test_a_memory_is_revoked_rather_than_archived(workspace, as_operator):
    memory = make_memory(workspace)
    as_operator.post("/operator/personas/memory/", {"action": "archive", "_selected_action": [memory.pk]})
    assert Memory.objects.in_workspace(workspace).get().status == "revoked"


def test_nothing_can_be_deleted_or_added_past_the_services(workspace, as_operator):
    soul = make_soul(workspace)
    assert as_operator.get(f"/operator/personas/soul/{soul.pk}/delete/").status_code == 403
    assert as_operator.get("/operator/personas/soul/add/").status_code == 403
    assert as_operator.get("/operator/personas/auditevent/").status_code == 200


def test_members_have_no_access_to_the_admin(as_alice):
    assert as_alice.get("/operator/personas/soul/").status_code in {302, 404}

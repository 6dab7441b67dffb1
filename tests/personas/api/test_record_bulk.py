"""Bulk actions by API: many records in one request, all or nothing."""

import pytest

from personas.api_keys.format import BOT
from personas.models import AuditEvent, Memory, MemoryStatus, Soul
from personas.roles import Role
from prompts.models import AgentPrompt
from tests.factories import (
    join,
    make_agent,
    make_channel,
    make_memory,
    make_soul,
    make_user,
)
from tests.module_fixtures import commits_heard
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
def proposed(workspace):
    return [make_memory(workspace, text, status=MemoryStatus.PROPOSED) for text in ("Likes tea.", "Reads.")]


def ids_of(rows):
    return {"ids": [row.pk for row in rows]}


def states_of(rows):
    return [Memory.objects.in_workspace(row.workspace_id).get(pk=row.pk).status for row in rows]


def newest_version(agent):
    rows = AgentPrompt.objects.in_workspace(agent.workspace_id).filter(agent=agent)
    return rows.values_list("latest__number", flat=True)[0]


def test_memories_are_approved_together(admin, workspace, proposed):
    answer = admin.post("memories:approve", {"ids": [proposed[1].pk, proposed[0].pk]})
    assert answer.status_code == 200, answer.content
    assert [row["id"] for row in answer.json()["items"]] == [proposed[1].pk, proposed[0].pk]
    assert {row["status"] for row in answer.json()["items"]} == {"active"}
    assert states_of(proposed) == ["active", "active"]
    events = AuditEvent.objects.in_workspace(workspace).filter(kind="memory", verb="approved")
    assert events.count() == 2


def test_memories_are_rejected_together_and_alone(admin, proposed):
    assert admin.post("memories:reject", ids_of(proposed[:1])).status_code == 200
    assert admin.post(f"memories/{proposed[1].pk}:reject").json()["status"] == "revoked"
    assert states_of(proposed) == ["revoked", "revoked"]
    again = admin.post("memories:reject", ids_of(proposed))
    assert (again.status_code, again.json()["code"]) == (409, "refused")


def test_one_memory_that_cannot_be_approved_leaves_all_as_they_are(admin, workspace, proposed):
    active = make_memory(workspace, "Lives in Bergen.")
    answer = admin.post("memories:approve", ids_of([*proposed, active]))
    assert (answer.status_code, answer.json()["code"]) == (409, "refused")
    assert f"“{active.pk}”: Only proposed memories" in answer.json()["detail"]
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/ids/2"]
    assert states_of(proposed) == ["proposed", "proposed"]


@pytest.mark.parametrize("verb", ["approve", "reject", "archive", "restore"])
def test_a_foreign_id_is_404_and_named_as_it_was_sent(verb, admin, workspace, elsewhere, proposed):
    foreign = make_memory(elsewhere, "Secret.", status=MemoryStatus.PROPOSED)
    for pk in (foreign.pk, 987_654_321):
        answer = admin.post(f"memories:{verb}", {"ids": [proposed[0].pk, pk]})
        assert answer.status_code == 404, answer.content
        assert answer.json()["detail"] == f"No memory “{pk}” in this workspace."
        assert answer.json()["errors"][0]["pointer"] == "/ids/1"
    assert states_of([*proposed, foreign]) == ["proposed"] * 3


def test_reviewers_decide_but_do_not_archive(key_for, workspace, proposed):
    reviewer = make_user("Rita")
    join(workspace, reviewer, Role.REVIEWER)
    key = key_for(workspace, reviewer)
    assert key.post("memories:archive", ids_of(proposed)).status_code == 403
    assert key.post("memories:approve", ids_of(proposed)).status_code == 200


def test_bots_and_keys_without_the_verb_decide_nothing(key_for, workspace, alice, proposed):
    for key in (key_for(workspace, alice, BOT), key_for(workspace, alice, verbs=["read", "write"])):
        assert key.post("memories:approve", ids_of(proposed)).status_code == 403
        assert key.post("memories:reject", ids_of(proposed)).status_code == 403
    assert states_of(proposed) == ["proposed", "proposed"]


def test_a_key_for_one_agent_decides_about_memories_of_that_agent_only(key_for, workspace, alice):
    pilot, cook = make_agent(workspace, "pilot"), make_agent(workspace, "cook")
    own, other, shared = (
        make_memory(workspace, "Sails.", agent=agent, status=MemoryStatus.PROPOSED)
        for agent in (pilot, cook, None)
    )
    key = key_for(workspace, alice, agents=["pilot"])
    assert key.post("memories:approve", ids_of([own, other])).status_code == 404
    assert key.post("memories:approve", ids_of([own, shared])).status_code == 403
    assert states_of([own, other, shared]) == ["proposed"] * 3
    assert key.post("memories:approve", ids_of([own])).status_code == 200


def test_records_are_archived_and_restored_together(admin, workspace):
    souls = [make_soul(workspace, label) for label in ("Calm", "Loud")]
    answer = admin.post("souls:archive", ids_of(souls))
    assert [row["is_archived"] for row in answer.json()["items"]] == [True, True], answer.content
    assert admin.get("souls").json()["items"] == []
    back = admin.post("souls:restore", ids_of(souls))
    assert [row["is_archived"] for row in back.json()["items"]] == [False, False]


def test_a_record_in_use_keeps_all_from_being_archived(admin, workspace):
    free, used = make_soul(workspace, "Calm"), make_soul(workspace, "Loud")
    make_agent(workspace, "pilot", soul=used)
    answer = admin.post("souls:archive", ids_of([free, used]))
    assert (answer.status_code, answer.json()["code"]) == (409, "in_use")
    assert f"“{used.pk}”" in answer.json()["detail"]
    assert not Soul.objects.in_workspace(workspace).exclude(archived_at=None).exists()


def test_a_prompt_that_several_memories_change_is_built_once(admin, workspace, proposed):
    agent = make_agent(workspace, "pilot", channels=[make_channel(workspace, "deck")])
    with commits_heard():
        admin.post(f"agents/{agent.slug}/prompts:rebuild")
    before = newest_version(agent)
    with commits_heard():
        assert admin.post("memories:approve", ids_of(proposed)).status_code == 200
    assert newest_version(agent) == before + 1


@pytest.mark.parametrize(
    "body", [{}, {"ids": []}, {"ids": ["1"]}, {"ids": [0]}, {"ids": [1, 1]}, {"ids": list(range(1, 202))}]
)
def test_bodies_without_a_list_of_different_ids_are_rejected(body, admin):
    assert admin.post("memories:approve", body).status_code == 422

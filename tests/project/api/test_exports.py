"""Exports by API: the files of the pages, streamed, audited where the pages are."""

import csv
import io
import json

import pytest

from personas.api_keys.format import BOT
from personas.models import AuditEvent
from personas.roles import Role
from project.api.exports import LIST_EXPORTS
from tests.factories import join, make_agent, make_channel, make_memory, make_skill, make_task, make_user
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
SENSITIVE = [one.resource for one in LIST_EXPORTS if one.is_sensitive]
OTHERS = [one.resource for one in LIST_EXPORTS if not one.is_sensitive]


def text_of(answer):
    assert answer.status_code == 200, answer.content
    assert answer.streaming
    return answer.getvalue().decode("utf-8-sig")


def rows_of(answer):
    return list(csv.DictReader(io.StringIO(text_of(answer))))


def exported(workspace):
    return AuditEvent.objects.in_workspace(workspace).filter(verb="exported")


def test_the_lists_with_sensitive_data_are_those_of_the_pages():
    assert SENSITIVE == ["audit", "ledger", "keys", "members"]


@pytest.mark.parametrize("name", [*OTHERS, *SENSITIVE])
def test_every_export_is_the_file_of_its_page(name, admin, as_alice, workspace):
    agent = make_agent(workspace, "pilot", channels=[make_channel(workspace, "deck")])
    make_memory(workspace, "=1+1", agent=agent)
    make_task(workspace)
    make_skill(workspace, name="tea")
    by_api = text_of(admin.get(f"{name}:export"))
    path = f"{name}/export/?format=csv" if name in SENSITIVE else f"{name}/?format=csv"
    by_page = as_alice.get(f"/w/{workspace.slug}/{path}")
    expected = by_page.getvalue().decode("utf-8-sig")
    # The export of the audit log by the page has the event of the export by API.
    assert by_api.splitlines()[0] == expected.splitlines()[0]
    if name != "audit":
        assert sorted(by_api.splitlines()) == sorted(expected.splitlines())


def test_memories_are_exported_with_filters_and_without_formulas(admin, workspace):
    agent = make_agent(workspace, "pilot")
    make_memory(workspace, "=HYPERLINK()", agent=agent)
    make_memory(workspace, "Likes tea.")
    answer = admin.get("memories:export?q=HYPERLINK")
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert "memories" in answer["Content-Disposition"]
    assert answer["Cache-Control"] == "private, no-store"
    assert [row["text"] for row in rows_of(answer)] == ["'=HYPERLINK()"]
    assert [row["agent_slug"] for row in rows_of(admin.get("memories:export?agent=pilot&q=HYP"))] == ["pilot"]


def test_json_has_the_same_rows(admin, workspace):
    make_memory(workspace, "Likes tea.")
    answer = admin.get("memories:export?format=json")
    assert answer["Content-Type"] == "application/json"
    data = json.loads(text_of(answer))
    assert ([row["text"] for row in data["rows"]], data["note"]) == (["Likes tea."], "")
    assert admin.get("memories:export?format=xml").status_code == 422
    assert admin.get("memories:export?format=csv")["Content-Type"] == "text/csv; charset=utf-8"


@pytest.mark.parametrize("name", SENSITIVE)
def test_a_sensitive_export_is_audited_and_needs_an_owners_key(name, admin, key_for, workspace, alice):
    other = make_user("Arne")
    join(workspace, other, Role.ADMIN)
    keys = [key_for(workspace, other), key_for(workspace, alice, verbs=["read", "write"])]
    keys += [key_for(workspace, alice, BOT), key_for(workspace, alice, labels=["staging"])]
    assert {key.get(f"{name}:export").status_code for key in keys} == {403}
    assert not exported(workspace).exists()
    text_of(admin.get(f"{name}:export"))
    event = exported(workspace).get()
    assert "(key Key" in event.actor_label
    assert event.after["format"] == "csv"


def test_the_audit_event_has_the_filters_but_not_the_search_text(admin, workspace):
    text_of(admin.get("members:export?role=viewer&q=secret"))
    after = exported(workspace).get().after
    assert (after["role"], after["q"]) == ("viewer", "(words)")


@pytest.mark.parametrize("name", OTHERS)
def test_other_exports_are_for_every_role_but_not_for_bots_and_limited_keys(name, key_for, workspace, alice):
    viewer = make_user("Vera")
    join(workspace, viewer, Role.VIEWER)
    assert text_of(key_for(workspace, viewer).get(f"{name}:export"))
    for key in (key_for(workspace, alice, BOT), key_for(workspace, alice, labels=["staging"])):
        assert key.get(f"{name}:export").status_code == 403
    assert not exported(workspace).exists()


def test_head_exports_nothing_and_leaves_no_event(admin, workspace):
    answer = admin.call("HEAD", "members:export")
    assert (answer.status_code, answer.content) == (200, b"")
    assert not exported(workspace).exists()

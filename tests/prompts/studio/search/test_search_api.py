"""Search over everything by API: the same results as the command palette, with keys of their resources."""

import pytest

from personas.api_keys.format import BOT
from personas.records.services import archive_record
from personas.roles import Role
from tests.factories import BY, join, make_agent, make_memory, make_soul, make_task, make_user
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


def find(api, query):
    answer = api.get(f"search?q={query}")
    assert answer.status_code == 200, answer.content
    return answer.json()["items"]


def test_records_of_all_kinds_are_found_and_can_be_read_at_their_resource(admin, workspace, elsewhere):
    make_agent(workspace, "lantern", name="Lantern")
    make_memory(workspace, "The lantern is lit at dusk.")
    make_task(workspace, "Clean the lantern")
    archive_record(make_soul(workspace, "Lantern soul"), by=BY)
    make_soul(elsewhere, "Lantern elsewhere")
    items = find(admin, "lantern")
    assert {item["kind"] for item in items} == {"agents", "memories", "tasks", "souls"}
    assert [item["is_archived"] for item in items if item["kind"] == "souls"] == [True]
    for item in items:
        assert admin.get(f"{item['kind']}/{item['key']}").status_code == 200, item
        assert item["page"].startswith(f"/w/{workspace.slug}/")


def test_members_have_no_key_and_actions_are_left_out(admin, workspace, bob):
    make_agent(workspace, "bobcat", name="Bobcat")
    items = find(admin, "bob")
    assert {item["kind"] for item in items} == {"agents", "members"}
    assert [item["key"] for item in items if item["kind"] == "members"] == [None]


def test_keys_are_found_only_with_a_key_that_may_manage_keys(admin, key_for, workspace):
    viewer = make_user("Vera")
    join(workspace, viewer, Role.VIEWER)
    assert "keys" in {item["kind"] for item in find(admin, "Key")}
    assert "keys" not in {item["kind"] for item in find(key_for(workspace, viewer), "Key")}


def test_bots_and_limited_keys_do_not_search_everything(key_for, workspace, alice):
    make_agent(workspace, "pilot")
    for key in (key_for(workspace, alice, BOT), key_for(workspace, alice, agents=["pilot"])):
        assert key.get("search?q=pilot").status_code == 403


@pytest.mark.parametrize("query", ["", "?q=", "?q=%20%20", "?q=" + "x" * 101, "?q=a%00b"])
def test_a_search_needs_terms(query, admin):
    assert admin.get(f"search{query}").status_code == 422

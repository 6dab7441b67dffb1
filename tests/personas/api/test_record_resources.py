"""Record resources of the API: the same actions as on the pages, with ETags, pagination and problems."""

from collections.abc import Callable

import pytest

from personas.api_keys.format import BOT
from personas.models import Agent, Memory, Soul, User, Workspace
from tests.api_client import Api
from tests.factories import make_agent, make_memory, make_soul
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


def test_a_record_is_created_changed_archived_and_restored(admin: Api) -> None:
    created = admin.post("souls", {"name": "Calm", "text": "Breathe."})
    assert created.status_code == 201, created.content
    assert created["Location"] == "/api/v1/souls/calm"
    assert created.json()["text"] == "Breathe."
    etag = created["ETag"]
    changed = admin.patch("souls/calm", {"text": "Breathe out.", "message": "Slower"}, etag)
    assert changed.status_code == 200, changed.content
    assert changed["ETag"] != etag
    assert admin.delete("souls/calm", changed["ETag"]).status_code == 204
    assert admin.get("souls").json()["items"] == []
    assert [row["slug"] for row in admin.get("souls?archived=true").json()["items"]] == ["calm"]
    back = admin.post("souls/calm:restore")
    assert back.json()["is_archived"] is False
    history = admin.get("souls/calm/revisions").json()["items"]
    assert [row["message"] for row in history] == ["Slower", ""]
    again = admin.call("POST", "souls/calm/revisions/1:restore", If_Match=back["ETag"])
    assert again.json()["text"] == "Breathe."


def test_a_change_requires_if_match(admin: Api, workspace: Workspace) -> None:
    soul = make_soul(workspace, text="Before.")
    without = admin.call("PATCH", f"souls/{soul.slug}", {"text": "After."})
    assert (without.status_code, without.json()["code"]) == (428, "precondition_required")
    stale = admin.patch(f"souls/{soul.slug}", {"text": "After."}, '"7"')
    assert (stale.status_code, stale.json()["code"]) == (412, "precondition_failed")
    assert Soul.objects.in_workspace(workspace).get().text == "Before."


def test_put_resets_missing_fields(admin: Api) -> None:
    created = admin.post("identities", {"name": "Fox", "display_name": "Mira", "vibe": "dry"})
    put = admin.call(
        "PUT", "identities/fox", {"name": "Fox", "display_name": "Mira"}, If_Match=created["ETag"]
    )
    assert (put.status_code, put.json()["vibe"]) == (200, "")


def test_links_are_names_of_this_workspace(admin: Api, workspace: Workspace, elsewhere: Workspace) -> None:
    soul, foreign = make_soul(workspace), make_soul(elsewhere, name="Foreign")
    created = admin.post("agents", {"slug": "mira", "name": "Mira", "soul": soul.slug})
    assert created.json()["soul"] == soul.slug, created.content
    for name in (foreign.slug, "no-such"):
        refused = admin.post("agents", {"slug": "nils", "name": "Nils", "soul": name})
        assert refused.status_code == 422
        assert refused.json()["errors"] == [{"detail": "Record not found.", "pointer": "/soul"}]


def test_one_set_of_tools_stays_when_the_other_is_named(admin: Api) -> None:
    for name in ("read", "write"):
        assert admin.post("tools", {"name": name}).status_code == 201
    created = admin.post(
        "agents", {"slug": "mira", "name": "Mira", "tools": ["read"], "planning_tools": ["write"]}
    )
    changed = admin.patch("agents/mira", {"tools": []}, created["ETag"]).json()
    assert (changed["tools"], changed["planning_tools"]) == ([], ["write"])


def test_the_snippet_of_a_tool_is_stored_as_one_line(admin: Api) -> None:
    created = admin.post("tools", {"name": "deploy", "snippet": " Roll\r\n out\n\na build \n"})
    assert created.json()["snippet"] == "Roll out a build"
    changed = admin.patch("tools/deploy", {"snippet": "\n"}, created["ETag"])
    assert changed.json()["snippet"] == ""
    refused = admin.post("tools", {"name": "publish", "snippet": "word\n" * 100})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/snippet")


def test_lists_come_in_pages(admin: Api, workspace: Workspace) -> None:
    for number in range(5):
        make_soul(workspace, name=f"Soul {number}")
    slugs, cursor = [], ""
    for _ in range(3):
        page = admin.get(f"souls?limit=2&fields=slug{cursor}").json()
        slugs += [row["slug"] for row in page["items"]]
        cursor = f"&cursor={page['next_cursor']}"
    assert (slugs, page["next_cursor"]) == ([f"soul-{number}" for number in range(5)], None)


def test_bots_propose_and_do_not_edit(bot: Api, admin: Api, workspace: Workspace) -> None:
    make_agent(workspace, slug="mira")
    proposed = bot.post("memories", {"text": "Likes tea.", "agent": "mira"})
    assert proposed.json()["status"] == "proposed", proposed.content
    assert bot.post("souls", {"name": "Mine"}).json()["code"] == "out_of_scope"
    number = proposed.json()["id"]
    assert bot.post(f"memories/{number}:approve").status_code == 403
    assert admin.post(f"memories/{number}:approve").json()["status"] == "active"


def test_a_key_for_one_agent_sees_no_other(
    key_for: Callable[..., Api], workspace: Workspace, alice: User, admin: Api
) -> None:
    for slug in ("mira", "nils"):
        make_agent(workspace, slug=slug)
        admin.post("memories", {"text": f"Of {slug}.", "agent": slug})
    narrow = key_for(workspace, alice, agents=["mira"])
    assert [row["slug"] for row in narrow.get("agents").json()["items"]] == ["mira"]
    assert narrow.get("agents/nils").status_code == 404
    assert [row["text"] for row in narrow.get("memories").json()["items"]] == ["Of mira."]
    refused = narrow.post("memories", {"text": "Of all."})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/agent")
    assert narrow.get("souls").status_code == 403
    assert Memory.objects.in_workspace(workspace).count() == 2
    assert Agent.objects.in_workspace(workspace).count() == 2


def test_a_task_is_ticked_and_a_duty_given_up(
    key_for: Callable[..., Api], admin: Api, workspace: Workspace, alice: User
) -> None:
    make_agent(workspace, slug="mira")
    bot = key_for(workspace, alice, BOT, agents=["mira"])
    task = admin.post("tasks", {"title": "Ship", "agent": "mira", "steps": [{"title": "Pack"}]}).json()
    ticked = bot.post(f"tasks/{task['number']}/steps/0:complete", {"is_done": True}).json()
    assert (ticked["steps"], ticked["status"]) == ([{"title": None, "is_done": True}], "in_progress")
    assert bot.post(f"tasks/{task['number']}/steps/1:complete", {"is_done": True}).status_code == 404
    admin.post("responsibilities", {"agent": "mira", "title": "Water", "text": "Daily."})
    assert bot.post("agents/mira/responsibilities:remove", {"title": "Water"}).status_code == 204
    assert bot.post("agents/mira/responsibilities:remove", {"title": "Water"}).status_code == 404


def test_rows_of_other_workspaces_get_the_same_404_as_missing_ones(admin: Api, elsewhere: Workspace) -> None:
    foreign = make_soul(elsewhere, name="Foreign")
    one, other = admin.get(f"souls/{foreign.slug}"), admin.get("souls/no-such")
    foreign_body, missing_body = one.json(), other.json()
    del foreign_body["request_id"], missing_body["request_id"]
    assert (foreign_body.pop("detail"), missing_body.pop("detail")) == (
        "No soul “foreign” in this workspace.",
        "No soul “no-such” in this workspace.",
    )
    assert (one.status_code, foreign_body) == (404, missing_body)


def test_a_cursor_is_valid_only_for_its_own_list(admin: Api, workspace: Workspace) -> None:
    for number in range(3):
        make_memory(workspace, f"Fact {number}.")
    cursor = admin.get("memories?limit=1").json()["next_cursor"]
    assert admin.get(f"memories?limit=1&cursor={cursor}").status_code == 200
    refused = admin.get(f"souls?limit=1&cursor={cursor}")
    assert (refused.status_code, refused.json()["errors"][0]["parameter"]) == (422, "cursor")

"""Lists: sorting, filters, bulk actions, empty states and query counts."""

import html
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from personas.actors import Actor
from personas.api_keys.services import create_key
from personas.audit.services import write_audit_event
from personas.models import AuditEvent, Memory, Soul, Tool
from personas.records.services import archive_record, edit_record
from personas.roles import Role
from skills.models import Skill
from tests.factories import (
    BY,
    join,
    make_agent,
    make_channel,
    make_memory,
    make_skill,
    make_soul,
    make_tool,
    make_user,
    signed_in,
)
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


@pytest.fixture
def as_vera(workspace):
    """A viewer."""
    vera = make_user("Vera")
    join(workspace, vera, Role.VIEWER)
    return signed_in(vera)


def page_text(answer):
    return html.unescape(answer.content.decode())


def order(answer, names):
    page = page_text(answer)
    return sorted(names, key=lambda name: page.index(f">{name}<"))


def page_after(client, answer):
    """Return the text of the page that an action redirects to."""
    return page_text(client.get(answer["Location"]))


# --- sorting -------------------------------------------------------------------------------------------


def test_a_list_is_sorted_by_its_column_headers(workspace, as_bob):
    for label in ("Beta", "Alpha", "Gamma"):
        make_soul(workspace, label)
    make_agent(workspace, soul=Soul.objects.in_workspace(workspace).get(name="Gamma"))
    base, names = f"/w/{workspace.slug}/souls/", ["Alpha", "Beta", "Gamma"]
    assert order(as_bob.get(base), names) == names
    assert order(as_bob.get(f"{base}?sort=-name"), names) == names[::-1]
    assert order(as_bob.get(f"{base}?sort=-agents"), names)[0] == "Gamma"
    page = page_text(as_bob.get(f"{base}?sort=-name&q=a"))
    assert page.count("aria-sort=") == 1
    assert 'aria-sort="descending"><a class="dr-sort" href="?q=a&sort=name"' in page


def test_unknown_sort_orders_are_ignored(workspace, as_bob):
    make_soul(workspace)
    for odd in ("?sort=zz", "?sort=-", "?sort=workspace__owner", "?sort=--name", "?sort=%00"):
        assert as_bob.get(f"/w/{workspace.slug}/souls/{odd}").status_code == 200


# --- bulk actions --------------------------------------------------------------------------------------


def test_bulk_archive_refuses_the_record_in_use_by_name(workspace, as_bob):
    tools = [make_tool(workspace, f"tool_{number}") for number in range(4)]
    make_agent(workspace, "pilot", tools=[tools[0]])
    chosen = {"verb": "archive", "chosen": [tool.pk for tool in tools]}
    answer = as_bob.post(f"/w/{workspace.slug}/tools/all/bulk/", chosen)
    assert "Archived: 3 tools; 1 failed: “tool_0”: In use by Pilot." in page_after(as_bob, answer)
    left = Tool.objects.in_workspace(workspace).filter(archived_at=None)
    assert [tool.name for tool in left] == ["tool_0"]


def test_a_bulk_action_can_be_undone_with_one_button(workspace, as_bob):
    tools = [make_tool(workspace) for _ in range(3)]
    base = f"/w/{workspace.slug}/tools/"
    back = f"{base}?sort=-name"
    chosen = {"verb": "archive", "chosen": [tool.pk for tool in tools], "back": back}
    answer = as_bob.post(f"{base}all/bulk/", chosen)
    assert answer["Location"] == back
    page = page_text(as_bob.get(back))
    fields = dict(re.findall(r'<input type="hidden" name="(verb|chosen|back)" value="([^"]*)">', page))
    assert (fields["verb"], sorted(fields["chosen"].split(","))) == (
        "restore",
        sorted(str(tool.pk) for tool in tools),
    )
    as_bob.post(f"{base}all/bulk/", fields)
    assert Tool.objects.in_workspace(workspace).filter(archived_at=None).count() == 3


def test_undo_restores_only_the_rows_that_the_action_archived(workspace, as_bob):
    old, fresh = make_tool(workspace, "old"), make_tool(workspace, "fresh")
    archive_record(old, by=BY)
    base = f"/w/{workspace.slug}/tools/"
    as_bob.post(f"{base}all/bulk/", {"verb": "archive", "chosen": [old.pk, fresh.pk]})
    fields = dict(
        re.findall(r'<input type="hidden" name="(verb|chosen)" value="([^"]*)">', page_text(as_bob.get(base)))
    )
    assert fields == {"verb": "restore", "chosen": str(fresh.pk)}
    as_bob.post(f"{base}all/bulk/", {"verb": "archive", "chosen": [old.pk]})
    assert 'data-key="u"' not in page_text(as_bob.get(base)).split("<template")[0]


def test_foreign_and_invalid_row_ids_are_ignored(workspace, elsewhere, as_bob):
    foreign = make_tool(elsewhere, "spy")
    base = f"/w/{workspace.slug}/tools/all/bulk/"
    for data in ({"chosen": [foreign.pk]}, {"chosen": ["x", "-1", "9" * 30, ""]}, {}):
        answer = as_bob.post(base, {"verb": "archive"} | data)
        assert "Select rows first" in page_after(as_bob, answer)
    assert not Tool.objects.in_workspace(elsewhere).get().is_archived
    assert "Choose an action" in page_after(as_bob, as_bob.post(base, {"verb": "erase", "chosen": [1]}))
    redirect = as_bob.post(base, {"verb": "archive", "back": "https://evil.example/"})
    assert redirect["Location"] == f"/w/{workspace.slug}/tools/"


def test_a_viewer_sees_no_check_boxes_and_may_not_run_bulk_actions(workspace, as_vera, as_bob):
    tool = make_tool(workspace, "lamp")
    base = f"/w/{workspace.slug}/tools/"
    assert 'name="chosen"' not in page_text(as_vera.get(base))
    assert 'name="chosen"' in page_text(as_bob.get(base))
    answer = as_vera.post(f"{base}all/bulk/", {"verb": "archive", "chosen": [tool.pk]})
    assert answer.status_code == 403
    assert not Tool.objects.in_workspace(workspace).get().is_archived


@pytest.mark.slow
def test_skills_are_assigned_to_an_agent_unassigned_and_assigned_to_all(workspace, elsewhere, as_bob):
    pilot, skills = make_agent(workspace, "pilot"), [make_skill(workspace) for _ in range(3)]
    base, ids = f"/w/{workspace.slug}/skills/all/bulk/", [skill.pk for skill in skills]

    def run_action(verb, **more):
        return page_after(as_bob, as_bob.post(base, {"verb": verb, "chosen": ids} | more))

    page = page_text(as_bob.post(base, {"verb": "give", "chosen": ids}))
    assert "Assign 3 skills to an agent" in page
    assert 'name="chosen"' in page
    assert "Choose an agent first." in run_action("give", agent="")
    assert "Choose an agent first." in run_action("give", agent=make_agent(elsewhere).pk)
    assert "Assigned: 3 skills." in run_action("give", agent=pilot.pk)
    assert {skill.agent_ids()[0] for skill in Skill.objects.in_workspace(workspace)} == {pilot.pk}
    assert "Removed from agent: 3 skills." in run_action("take", agent=pilot.pk)
    assert "3 failed" in run_action("take", agent=pilot.pk)
    assert "Assigned to all agents: 3 skills." in run_action("give_all")
    assert Skill.objects.in_workspace(workspace).filter(for_all_agents=True).count() == 3


def test_bulk_revocation_of_keys_requires_confirmation(workspace, as_alice, by_alice):
    keys = [create_key(workspace, f"Key {number}", {}, by=by_alice)[0] for number in range(3)]
    base, chosen = f"/w/{workspace.slug}/keys/bulk/", [key.pk for key in keys[:2]]
    page = page_text(as_alice.post(base, {"verb": "revoke", "chosen": chosen}))
    assert "Revoke 2 keys?" in page
    assert "Key 0" in page
    assert "Key 2" not in page
    assert all(key.revoked_at is None for key in (type(keys[0]).objects.in_workspace(workspace)))
    assert "Revoked: 2 keys." in page_after(as_alice, as_alice.post(base, {"chosen": chosen, "sure": "1"}))
    left = type(keys[0]).objects.in_workspace(workspace).filter(revoked_at=None)
    assert [key.name for key in left] == ["Key 2"]


# --- empty lists, filters, usage links -----------------------------------------------------------------


def test_an_empty_list_a_list_without_matches_and_a_viewers_list_differ(workspace, as_bob, as_vera):
    base = f"/w/{workspace.slug}/souls/"
    assert "Create the first one" in page_text(as_bob.get(base))
    page = page_text(as_vera.get(base))
    assert "Create the first one" not in page
    assert "Your role does not allow you to add one." in page
    make_soul(workspace)
    page = page_text(as_bob.get(f"{base}?q=nowhere"))
    assert "No results" in page
    assert f'href="{base}">' in page.split("No results")[1]


@pytest.mark.slow
def test_the_page_of_a_channel_links_to_all_its_agents(workspace, as_bob):
    deck, hall = make_channel(workspace, "deck"), make_channel(workspace, "hall")
    for number in range(14):
        make_agent(workspace, f"a{number}", channels=[deck if number else hall])
    page = page_text(as_bob.get(f"/w/{workspace.slug}/channels/deck/"))
    assert "View all agents" in page
    [url, *_] = re.findall(r'href="([^"]*channel=deck)"', page)
    listed = page_text(as_bob.get(url))
    assert "Channel: " in listed
    assert "13 of 13" in listed.replace("1–", "")
    assert ">A0<" not in listed


# --- members and the audit log -------------------------------------------------------------------------


def test_members_are_searched_filtered_and_sorted(workspace, as_alice):
    for name, role in (("Carol", Role.VIEWER), ("Dave", Role.REVIEWER)):
        join(workspace, make_user(name), role)
    base = f"/w/{workspace.slug}/members/"
    assert "carol@example.com" in page_text(as_alice.get(f"{base}?q=car"))
    assert "dave@example.com" not in page_text(as_alice.get(f"{base}?role=viewer"))
    emails = ["alice@example.com", "dave@example.com"]
    page = page_text(as_alice.get(f"{base}?sort=-person")).split("<tbody>")[1]
    assert page.index(f">{emails[1]}<") < page.index(f">{emails[0]}<")
    assert "No results" in page_text(as_alice.get(f"{base}?q=zzz"))


@pytest.mark.slow
def test_the_audit_log_is_filtered_by_actor_object_action_and_time(workspace, as_alice, by_alice):
    soul = make_soul(workspace, "Calm")
    edit_record(soul, {"text": "Other."}, expected=1, by=by_alice)
    archive_record(make_tool(workspace, "lamp"), by=BY)
    base = f"/w/{workspace.slug}/audit/"

    def rows(query):
        page = page_text(as_alice.get(base + query))
        return re.findall(r'<span class="dr-sub">(\w+)</span><span dir="auto">([^<]*)<', page)

    assert rows("?verb=edited") == [("soul", "Calm")]
    assert rows("?kind=tool&verb=archived") == [("tool", "lamp")]
    assert ("soul", "Calm") in rows("?actor=alice")
    assert ("tool", "lamp") not in rows("?actor=alice&verb=archived")
    assert rows("?q=alm&verb=created") == [("soul", "Calm")]
    assert rows("?since=2100-01-01T00:00") == []
    assert len(rows(f"?kind=soul&object={soul.pk}")) == 2
    late = as_alice.get(f"{base}?since=2026-01-02T00:00&until=2026-01-01T00:00")
    assert late.status_code == 422


@pytest.mark.slow
def test_the_audit_log_is_paginated_without_gaps_or_overlaps(workspace, as_alice, by_alice):
    for number in range(120):
        write_audit_event(workspace, "edited", "soul", number, f"Event {number:03}", by=by_alice)
    numbers, url = [], f"/w/{workspace.slug}/audit/?kind=soul"
    while url:
        page = page_text(as_alice.get(url))
        numbers += re.findall(r"Event (\d+)", page)
        next_link = re.search(r'rel="next" href="([^"]*)"', page)
        url = next_link[1] if next_link else ""
    assert numbers == [f"{number:03}" for number in range(119, -1, -1)]


def test_an_audit_event_shows_the_values_before_and_after(workspace, as_alice, as_vera, by_alice):
    soul = make_soul(workspace, "Calm", text="One line.\nAnother line.")
    edit_record(soul, {"text": "One line.\nA new line."}, expected=1, by=by_alice)
    event = AuditEvent.objects.in_workspace(workspace).get(verb="edited")
    page = page_text(as_alice.get(f"/w/{workspace.slug}/audit/{event.pk}/"))
    assert "Another" in page
    assert "A new line." in re.sub(r"<[^>]+>", "", page)
    assert "1 field unchanged" in page
    assert as_alice.get(f"/w/{workspace.slug}/audit/{event.pk + 999}/").status_code == 404
    create_key(workspace, "Desk", {"verbs": ["fetch"]}, by=by_alice)
    key_event = AuditEvent.objects.in_workspace(workspace).get(kind="key")
    assert "drm_bot" in page_text(as_alice.get(f"/w/{workspace.slug}/audit/{key_event.pk}/"))
    assert "drm_bot" not in page_text(as_vera.get(f"/w/{workspace.slug}/audit/{key_event.pk}/"))


@pytest.mark.slow
def test_long_lists_need_as_few_queries_as_short_ones(workspace, as_alice, by_alice):
    urls = [
        f"/w/{workspace.slug}/{path}"
        for path in ("memories/board/", "audit/", "members/", "labels/", "ledger/", "memories/?sort=-text")
    ]
    agent = make_agent(workspace, channels=[make_channel(workspace, "deck")])
    Memory.objects.in_workspace(workspace).bulk_create(
        Memory(
            workspace=workspace,
            text=f"Fact {number}",
            agent=agent if number % 2 else None,
            author_label="bot:scout",
            status=("proposed", "active", "superseded")[number % 3],
        )
        for number in range(400)
    )
    as_alice.get(urls[0])
    for url in urls:
        with CaptureQueriesContext(connection) as queries:
            assert as_alice.get(url).status_code == 200
        assert len(queries) <= 12, (url, [query["sql"][:80] for query in queries])


def test_a_memory_created_by_a_bot_is_proposed(workspace):
    assert make_memory(workspace, by=Actor.bot("scout")).status == "proposed"

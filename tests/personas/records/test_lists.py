"""Lists: sorted by their heads, acted on by many rows at once, useful when they are empty."""

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
from tests.shared_workspaces import (  # noqa: F401  # fixtures
    housed_alice,
    housed_bob,
    housed_elsewhere,
    housed_mallory,
    housed_workspace,
    the_house,
)


@pytest.fixture
def as_vera(workspace):
    """A viewer."""
    vera = make_user("Vera")
    join(workspace, vera, Role.VIEWER)
    return signed_in(vera)


def words(answer):
    return html.unescape(answer.content.decode())


def order(answer, names):
    page = words(answer)
    return sorted(names, key=lambda name: page.index(f">{name}<"))


def told(client, answer):
    """What the page after a button says."""
    return words(client.get(answer["Location"]))


# --- sorting -------------------------------------------------------------------------------------------


def test_a_list_is_sorted_by_its_heads_and_says_so(workspace, as_bob):
    for label in ("Beta", "Alpha", "Gamma"):
        make_soul(workspace, label)
    make_agent(workspace, soul=Soul.objects.in_workspace(workspace).get(label="Gamma"))
    base, names = f"/w/{workspace.slug}/souls/", ["Alpha", "Beta", "Gamma"]
    assert order(as_bob.get(base), names) == names
    assert order(as_bob.get(f"{base}?sort=-label"), names) == names[::-1]
    assert order(as_bob.get(f"{base}?sort=-agents"), names)[0] == "Gamma"
    page = words(as_bob.get(f"{base}?sort=-label&q=a"))
    assert page.count("aria-sort=") == 1
    assert 'aria-sort="descending"><a class="dr-sort" href="?q=a&sort=label"' in page


def test_strange_orders_are_as_if_unsaid(workspace, as_bob):
    make_soul(workspace)
    for odd in ("?sort=zz", "?sort=-", "?sort=workspace__owner", "?sort=--label", "?sort=%00"):
        assert as_bob.get(f"/w/{workspace.slug}/souls/{odd}").status_code == 200


# --- many at once --------------------------------------------------------------------------------------


def test_many_are_archived_and_the_one_in_use_is_refused_by_name(workspace, as_bob):
    tools = [make_tool(workspace, f"tool_{number}") for number in range(4)]
    make_agent(workspace, "pilot", tools=[tools[0]])
    chosen = {"verb": "archive", "chosen": [tool.pk for tool in tools]}
    answer = as_bob.post(f"/w/{workspace.slug}/tools/all/bulk/", chosen)
    assert "Archived 3; 1 refused: “tool_0”: Still used by Pilot." in told(as_bob, answer)
    left = Tool.objects.in_workspace(workspace).filter(archived_at=None)
    assert [tool.name for tool in left] == ["tool_0"]


def test_what_was_done_to_many_can_be_undone_by_one_button(workspace, as_bob):
    tools = [make_tool(workspace) for _ in range(3)]
    base = f"/w/{workspace.slug}/tools/"
    back = f"{base}?sort=-name"
    chosen = {"verb": "archive", "chosen": [tool.pk for tool in tools], "back": back}
    answer = as_bob.post(f"{base}all/bulk/", chosen)
    assert answer["Location"] == back
    page = words(as_bob.get(back))
    fields = dict(re.findall(r'<input type="hidden" name="(verb|chosen|back)" value="([^"]*)">', page))
    assert (fields["verb"], sorted(fields["chosen"].split(","))) == (
        "restore",
        sorted(str(tool.pk) for tool in tools),
    )
    as_bob.post(f"{base}all/bulk/", fields)
    assert Tool.objects.in_workspace(workspace).filter(archived_at=None).count() == 3


def test_undo_brings_back_only_what_this_button_put_away(workspace, as_bob):
    old, fresh = make_tool(workspace, "old"), make_tool(workspace, "fresh")
    archive_record(old, by=BY)
    base = f"/w/{workspace.slug}/tools/"
    as_bob.post(f"{base}all/bulk/", {"verb": "archive", "chosen": [old.pk, fresh.pk]})
    fields = dict(
        re.findall(r'<input type="hidden" name="(verb|chosen)" value="([^"]*)">', words(as_bob.get(base)))
    )
    assert fields == {"verb": "restore", "chosen": str(fresh.pk)}
    as_bob.post(f"{base}all/bulk/", {"verb": "archive", "chosen": [old.pk]})
    assert 'data-key="u"' not in words(as_bob.get(base)).split("<template")[0]


def test_foreign_and_strange_choices_are_no_choices(workspace, elsewhere, as_bob):
    foreign = make_tool(elsewhere, "spy")
    base = f"/w/{workspace.slug}/tools/all/bulk/"
    for said in ({"chosen": [foreign.pk]}, {"chosen": ["x", "-1", "9" * 30, ""]}, {}):
        answer = as_bob.post(base, {"verb": "archive"} | said)
        assert "Tick the rows first" in told(as_bob, answer)
    assert not Tool.objects.in_workspace(elsewhere).get().is_archived
    assert "Press one of the buttons" in told(as_bob, as_bob.post(base, {"verb": "erase", "chosen": [1]}))
    away = as_bob.post(base, {"verb": "archive", "back": "https://evil.example/"})
    assert away["Location"] == f"/w/{workspace.slug}/tools/"


def test_a_viewer_neither_sees_boxes_nor_may_press(workspace, as_vera, as_bob):
    tool = make_tool(workspace, "lamp")
    base = f"/w/{workspace.slug}/tools/"
    assert 'name="chosen"' not in words(as_vera.get(base))
    assert 'name="chosen"' in words(as_bob.get(base))
    answer = as_vera.post(f"{base}all/bulk/", {"verb": "archive", "chosen": [tool.pk]})
    assert answer.status_code == 403
    assert not Tool.objects.in_workspace(workspace).get().is_archived


def test_skills_are_given_to_an_agent_taken_back_and_given_to_all(workspace, elsewhere, as_bob):
    pilot, skills = make_agent(workspace, "pilot"), [make_skill(workspace) for _ in range(3)]
    base, ids = f"/w/{workspace.slug}/skills/all/bulk/", [skill.pk for skill in skills]

    def press(verb, **more):
        return told(as_bob, as_bob.post(base, {"verb": verb, "chosen": ids} | more))

    page = words(as_bob.post(base, {"verb": "give", "chosen": ids}))
    assert "Give 3 skills to an agent" in page
    assert 'name="chosen"' in page
    assert "Choose an agent first." in press("give", agent="")
    assert "Choose an agent first." in press("give", agent=make_agent(elsewhere).pk)
    assert "Given 3." in press("give", agent=pilot.pk)
    assert {skill.agent_ids()[0] for skill in Skill.objects.in_workspace(workspace)} == {pilot.pk}
    assert "Taken back 3." in press("take", agent=pilot.pk)
    assert "3 refused" in press("take", agent=pilot.pk)
    assert "Given to all agents 3." in press("give_all")
    assert Skill.objects.in_workspace(workspace).filter(for_all_agents=True).count() == 3


def test_keys_are_revoked_together_only_after_a_page_that_names_them(workspace, as_alice, by_alice):
    keys = [create_key(workspace, f"Key {number}", {}, by=by_alice)[0] for number in range(3)]
    base, chosen = f"/w/{workspace.slug}/keys/bulk/", [key.pk for key in keys[:2]]
    page = words(as_alice.post(base, {"verb": "revoke", "chosen": chosen}))
    assert "Revoke 2 keys?" in page
    assert "Key 0" in page
    assert "Key 2" not in page
    assert all(key.revoked_at is None for key in (type(keys[0]).objects.in_workspace(workspace)))
    assert "Revoked 2." in told(as_alice, as_alice.post(base, {"chosen": chosen, "sure": "1"}))
    left = type(keys[0]).objects.in_workspace(workspace).filter(revoked_at=None)
    assert [key.name for key in left] == ["Key 2"]


# --- empty, narrowed, where used -----------------------------------------------------------------------


def test_an_empty_list_an_emptied_one_and_a_readers_differ(workspace, as_bob, as_vera):
    base = f"/w/{workspace.slug}/souls/"
    assert "Create the first one" in words(as_bob.get(base))
    page = words(as_vera.get(base))
    assert "Create the first one" not in page
    assert "Your role is to read." in page
    make_soul(workspace)
    page = words(as_bob.get(f"{base}?q=nowhere"))
    assert "Nothing matches" in page
    assert f'href="{base}">' in page.split("Nothing matches")[1]


def test_the_page_of_a_channel_leads_to_all_agents_on_it(workspace, as_bob):
    deck, hall = make_channel(workspace, "deck"), make_channel(workspace, "hall")
    for number in range(14):
        make_agent(workspace, f"a{number}", channels=[deck if number else hall])
    page = words(as_bob.get(f"/w/{workspace.slug}/channels/deck/"))
    assert "All agents that use it" in page
    [address, *_] = re.findall(r'href="([^"]*channel=deck)"', page)
    listed = words(as_bob.get(address))
    assert "Channel: " in listed
    assert "13 of 13" in listed.replace("1–", "")
    assert ">A0<" not in listed


# --- people and the log --------------------------------------------------------------------------------


def test_members_are_searched_narrowed_and_sorted(workspace, as_alice):
    for name, role in (("Carol", Role.VIEWER), ("Dave", Role.REVIEWER)):
        join(workspace, make_user(name), role)
    base = f"/w/{workspace.slug}/members/"
    assert "carol@example.com" in words(as_alice.get(f"{base}?q=car"))
    assert "dave@example.com" not in words(as_alice.get(f"{base}?role=viewer"))
    emails = ["alice@example.com", "dave@example.com"]
    page = words(as_alice.get(f"{base}?sort=-person")).split("<tbody>")[1]
    assert page.index(f">{emails[1]}<") < page.index(f">{emails[0]}<")
    assert "Nothing matches" in words(as_alice.get(f"{base}?q=zzz"))


def test_the_log_is_narrowed_by_who_what_verb_and_time(workspace, as_alice, by_alice):
    soul = make_soul(workspace, "Calm")
    edit_record(soul, {"text": "Other."}, expected=1, by=by_alice)
    archive_record(make_tool(workspace, "lamp"), by=BY)
    base = f"/w/{workspace.slug}/audit/"

    def rows(query):
        page = words(as_alice.get(base + query))
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


def test_the_log_is_read_page_by_page_without_gap_or_overlap(workspace, as_alice, by_alice):
    for number in range(120):
        write_audit_event(workspace, "edited", "soul", number, f"Event {number:03}", by=by_alice)
    seen, address = [], f"/w/{workspace.slug}/audit/?kind=soul"
    while address:
        page = words(as_alice.get(address))
        seen += re.findall(r"Event (\d+)", page)
        found = re.search(r'rel="next" href="([^"]*)"', page)
        address = found[1] if found else ""
    assert seen == [f"{number:03}" for number in range(119, -1, -1)]


def test_an_event_tells_what_was_before_and_after(workspace, as_alice, as_vera, by_alice):
    soul = make_soul(workspace, "Calm", text="One line.\nAnother line.")
    edit_record(soul, {"text": "One line.\nA new line."}, expected=1, by=by_alice)
    event = AuditEvent.objects.in_workspace(workspace).get(verb="edited")
    page = words(as_alice.get(f"/w/{workspace.slug}/audit/{event.pk}/"))
    assert "Another" in page
    assert "A new line." in re.sub(r"<[^>]+>", "", page)
    assert "1 field stayed as it was" in page
    assert as_alice.get(f"/w/{workspace.slug}/audit/{event.pk + 999}/").status_code == 404
    create_key(workspace, "Desk", {"verbs": ["fetch"]}, by=by_alice)
    made = AuditEvent.objects.in_workspace(workspace).get(kind="key")
    assert "drm_bot" in words(as_alice.get(f"/w/{workspace.slug}/audit/{made.pk}/"))
    assert "drm_bot" not in words(as_vera.get(f"/w/{workspace.slug}/audit/{made.pk}/"))


def test_long_lists_cost_as_many_questions_as_short_ones(workspace, as_alice, by_alice):
    addresses = [
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
            state=("proposed", "active", "superseded")[number % 3],
        )
        for number in range(400)
    )
    as_alice.get(addresses[0])
    for address in addresses:
        with CaptureQueriesContext(connection) as asked:
            assert as_alice.get(address).status_code == 200
        assert len(asked) <= 12, (address, [query["sql"][:80] for query in asked])


def test_a_bots_word_is_still_only_proposed(workspace):
    assert make_memory(workspace, by=Actor.bot("scout")).state == "proposed"

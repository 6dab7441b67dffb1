"""Record pages: valid and invalid input, edit conflicts, query counts."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from personas.models import Agent, Identity, Memory, Soul
from personas.records.services import edit_record
from tests.factories import (
    make_agent,
    make_channel,
    make_identity,
    make_memory,
    make_profile,
    make_responsibility,
    make_skill,
    make_soul,
    make_task,
    make_tool,
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

LISTS = (
    "agents",
    "identities",
    "souls",
    "user-profiles",
    "memories",
    "responsibilities",
    "tasks",
    "tools",
    "channels",
    "skills",
    "members",
    "audit",
)


def create_records(workspace, size):
    channel = make_channel(workspace)
    for number in range(size):
        label = f"Number {number}"
        tool = make_tool(workspace)
        agent = make_agent(
            workspace,
            identity=make_identity(workspace, label),
            soul=make_soul(workspace, label),
            user_profile=make_profile(workspace, label),
            tools=[tool],
            channels=[channel],
        )
        make_memory(workspace, label, agent=agent)
        make_responsibility(agent)
        make_task(workspace, agent=agent, steps=[{"title": "Go", "is_done": False}])
        make_skill(workspace, agents=[agent])


def list_queries(client, url):
    with CaptureQueriesContext(connection) as queries:
        assert client.get(url).status_code == 200
    return [query["sql"][:90] for query in queries]


@pytest.mark.slow
def test_the_number_of_queries_does_not_grow_with_the_list(workspace, as_bob):
    urls = [f"/w/{workspace.slug}/{name}/" for name in LISTS]
    create_records(workspace, 1)
    as_bob.get(urls[0])
    short = {url: list_queries(as_bob, url) for url in urls}
    create_records(workspace, 2)
    long = {url: list_queries(as_bob, url) for url in urls}
    assert {url: len(queries) for url, queries in long.items()} == {
        url: len(queries) for url, queries in short.items()
    }
    assert {url: queries for url, queries in long.items() if len(queries) > 8} == {}


def test_after_an_edit_conflict_the_user_sees_both_texts_and_may_overwrite(workspace, as_alice, as_bob):
    soul = make_soul(workspace, text="One")
    url = f"/w/{workspace.slug}/souls/{soul.slug}/edit/"
    assert as_alice.post(url, {"name": "Calm", "text": "Two", "revision": 1}).status_code == 302
    data = {"name": "Calm", "text": "Three", "revision": 1}
    answer = as_bob.post(url, data)
    page = answer.content.decode()
    assert answer.status_code == 409
    assert '<bdi title="alice@example.com">Alice</bdi> changed this' in page
    assert "Two" in page
    assert "Three" in page
    assert Soul.objects.in_workspace(workspace).get().text == "Two"
    assert as_bob.post(url, data | {"overwrite": "2"}).status_code == 302
    assert Soul.objects.in_workspace(workspace).get().text == "Three"


@pytest.mark.parametrize(
    "text", ["👩‍👩‍👧‍👦", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "مرحبا بالعالم", "שלום", "é vs é", "<script>alert(1)</script>"]
)
def test_text_in_every_script_is_stored_unchanged(workspace, as_bob, text):
    as_bob.post(
        f"/w/{workspace.slug}/identities/new/", {"name": "L", "display_name": text, "emoji": "👩‍👩‍👧‍👦"}
    )
    identity = Identity.objects.in_workspace(workspace).get()
    assert (identity.display_name, identity.emoji) == (text, "👩‍👩‍👧‍👦")
    assert "<script>alert" not in as_bob.get(f"/w/{workspace.slug}/identities/l/").content.decode()


def test_a_link_into_another_workspace_is_not_among_the_choices(workspace, elsewhere, as_bob):
    foreign = make_soul(elsewhere)
    fields = {"name": "N", "slug": "n", "layout": "opal", "release_policy": "automatic", "soul": foreign.pk}
    answer = as_bob.post(f"/w/{workspace.slug}/agents/new/", fields)
    assert answer.status_code == 422
    assert "soul" in answer.context["form"].errors
    assert not Agent.objects.in_workspace(workspace).exists()


def test_windows_newlines_are_normalized(workspace, as_bob):
    as_bob.post(f"/w/{workspace.slug}/souls/new/", {"name": "L", "text": "one\r\ntwo\rthree"})
    assert Soul.objects.in_workspace(workspace).get().text == "one\ntwo\nthree"


def test_the_order_of_an_agents_tools_survives_an_edit_of_something_else(workspace, as_bob):
    tools = [make_tool(workspace, name) for name in ("zeta", "alpha", "mike")]
    agent = make_agent(workspace, "pilot", tools=tools)
    fields = {
        "name": "Renamed",
        "layout": "opal",
        "release_policy": "automatic",
        "revision": 1,
        "tools": sorted(tool.pk for tool in tools),
    }
    assert as_bob.post(f"/w/{workspace.slug}/agents/pilot/edit/", fields).status_code == 302
    agent.refresh_from_db()
    assert agent.name == "Renamed"
    assert [link.tool.name for link in agent.tool_links.all()] == ["zeta", "alpha", "mike"]


def test_an_old_revision_is_shown_and_restored_from_its_page(workspace, as_bob, by_alice):
    soul = make_soul(workspace, text="First words")
    edit_record(soul, {"text": "Second words"}, expected=1, by=by_alice)
    base = f"/w/{workspace.slug}/souls/{soul.slug}/history/"
    assert "Second words" in as_bob.get(f"{base}2/").content.decode()
    assert as_bob.get(f"{base}9/").status_code == 404
    assert as_bob.post(f"{base}1/restore/").status_code == 302
    assert Soul.objects.in_workspace(workspace).get().text == "First words"


@pytest.mark.slow
def test_search_finds_and_invalid_queries_do_no_harm(workspace, as_bob):
    make_memory(workspace, "The kettle is green.")
    base = f"/w/{workspace.slug}/memories/"
    assert "kettle" in as_bob.get(f"{base}?q=KETTLE").content.decode()
    assert "No results" in as_bob.get(f"{base}?q=teapot").content.decode()
    for query in (
        "?q=%00",
        "?page=-1",
        "?page=zz",
        "?status=zz",
        "?agent=999999",
        "?q=" + "x" * 5000,
        "?q=%25_",
    ):
        assert as_bob.get(base + query).status_code == 200, query


def test_a_huge_number_in_a_url_answers_404(workspace, as_bob):
    for page in ("memories/99999999999999999999999/", "tasks/99999999999999999999999/"):
        assert as_bob.get(f"/w/{workspace.slug}/{page}").status_code == 404


def test_a_memory_keeps_its_state_when_its_text_is_edited(workspace, as_bob):
    memory = make_memory(workspace, "Old.")
    fields = {"text": "New.", "revision": 1, "status": "revoked"}
    assert as_bob.post(f"/w/{workspace.slug}/memories/{memory.pk}/edit/", fields).status_code == 302
    memory = Memory.objects.in_workspace(workspace).get()
    assert (memory.text, memory.status) == ("New.", "active")

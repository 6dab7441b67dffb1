"""The fleet of an empty workspace, of a large one, and of one with an unusual slug."""

import gzip

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from personas.api_keys.services import create_key
from personas.models import Agent, AuditEvent, Memory
from personas.roles import Role
from personas.workspaces.services import create_workspace
from prompts.models import BuildCause, PromptLabel
from prompts.studio.demo.load import read_demo_data
from tests.factories import BY, join, make_agent, make_channel, make_memory, make_user
from tests.prompts.studio.fleet.fleet_pages import (
    BULK,
    HOME,
    MOST_QUERIES,
    get_agent_names,
    get_fleet_page,
    get_html,
    get_messages_text,
    list_agent_names,
)
from tests.prompts.studio.fleet.fleet_stage import add_ledger_entry, make_large_fleet, rebuild
from tests.shared_cast import (  # noqa: F401  # fixtures
    SharedCast,
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_elsewhere,
    shared_mallory,
    shared_stage,
    shared_workspace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
FEW_QUERIES = ("", "?q=mate&channel=line-1", "?state=over&sort=tokens")
OTHER_QUERIES = ("?page=2", "?state=stale", "?state=ahead&sort=problems", "?state=ahead&sort=changed")


def set_stage(shared: SharedCast) -> None:
    vera = make_user("Vera")
    join(shared.workspace, vera, Role.VIEWER)
    shared.sign_in("Vera", vera)


# --- many agents ---------------------------------------------------------------------------------------


def test_a_page_has_thirty_agents_and_a_number_beyond_the_end_shows_the_last(as_bob, workspace):
    make_large_fleet(workspace, 33, 1)
    assert len(get_agent_names(as_bob)) == 30
    second = get_fleet_page(as_bob, "?page=2")
    assert list_agent_names(second) == ["Mate 030", "Mate 031", "Mate 032"]
    assert "31–33 of 33" in get_html(second)
    assert get_agent_names(as_bob, "?page=99") == list_agent_names(second)
    assert len(get_agent_names(as_bob, "?page=nonsense")) == 30


@pytest.mark.parametrize(
    ("agents", "queries"),
    [
        (32, FEW_QUERIES),
        pytest.param(70, FEW_QUERIES + OTHER_QUERIES, marks=pytest.mark.hard),
    ],
)
def test_a_large_fleet_takes_few_queries_and_bytes(as_bob, workspace, agents, queries):
    prompts = make_large_fleet(workspace, agents, 6)
    key, _ = create_key(workspace, "Reception", {}, by=BY)
    for prompt in prompts[:20]:
        add_ledger_entry(prompt, key)
    BuildCause(workspace=workspace, agent=prompts[0].agent, cause={}).save()
    for query_string in queries:
        with CaptureQueriesContext(connection) as captured:
            response = get_fleet_page(as_bob, query_string)
        assert len(captured) <= MOST_QUERIES, "\n".join(query["sql"][:200] for query in captured)
        assert len(gzip.compress(response.content)) < 100_000, query_string


def test_the_confirmation_of_a_rollback_takes_few_queries(as_alice, workspace):
    prompts = make_large_fleet(workspace, 30, 2)
    labels = PromptLabel.objects.in_workspace(workspace).filter(prompt__in=prompts)
    assert labels.count() == 60
    with CaptureQueriesContext(connection) as captured:
        as_alice.post(BULK, {"verb": "roll-back", "chosen": [prompt.pk for prompt in prompts]})
    # More than the fleet: the page compares the versions.
    assert len(captured) <= MOST_QUERIES + 12


# --- the first run -------------------------------------------------------------------------------------


def test_an_empty_workspace_offers_three_ways_to_start(as_alice, as_bob, stage):
    page = get_html(get_fleet_page(as_alice))
    for text in ("Load the demo", "Import a folder", "Create an agent", "First steps"):
        assert text in page
    assert "Ask an owner or admin to load the demo." in get_html(get_fleet_page(as_bob))
    page = get_html(get_fleet_page(stage.client("Vera")))
    assert "Ask an owner, admin or editor to create the first agent." in page
    assert "Create an agent" not in page


def test_the_demo_is_loaded_into_an_empty_workspace_only(as_alice, as_bob, alice, workspace):
    assert as_bob.post(f"{HOME}fleet/demo/").status_code == 403
    [known] = [entry["text"] for entry in read_demo_data("memories") if entry["key"] == "storm-gate"]
    mine = make_memory(workspace, known, author_label=alice.email)
    response = as_alice.post("/w/harbour/fleet/demo/", follow=True)
    assert "Demo loaded" in get_messages_text(response)
    # A demo memory is superseded by the existing memory with the same text.
    assert Memory.objects.in_workspace(workspace).filter(superseded_by=mine).exists()
    assert Agent.objects.in_workspace(workspace).count() == 7
    assert not AuditEvent.objects.in_workspace(workspace).exclude(actor=alice).exclude(actor=None).exists()
    response = as_alice.post("/w/harbour/fleet/demo/", follow=True)
    assert "already has agents" in get_messages_text(response)
    assert Agent.objects.in_workspace(workspace).count() == 7


def test_the_fleet_links_work_in_a_workspace_with_the_slug_zero(alice, as_alice):
    workspace = create_workspace("Nought", "0", owner=alice)
    agent = make_agent(workspace, "pilot", channels=[make_channel(workspace, "deck")])
    rebuild(agent)
    [row] = as_alice.get("/w/0/").context["rows"]
    [(_channel, cell)] = row.cells
    assert cell.timeline_url == "/w/0/agents/pilot/versions/?channel=deck"
    assert as_alice.get(cell.url).status_code == 200

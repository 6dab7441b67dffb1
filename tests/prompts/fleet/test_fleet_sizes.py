"""The fleet of a house without agents, of one with very many, and of one with a strange name."""

import gzip

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from personas.api_keys.services import create_key
from personas.models import Agent, AuditEvent, Memory
from personas.roles import Role
from personas.workspaces.services import create_workspace
from prompts.demo.load import read_demo_data as cast_told
from prompts.models import BuildCause, PromptLabel
from tests.factories import BY, join, make_agent, make_channel, make_memory, make_user
from tests.prompts.fleet.fleet_pages import BULK, HOME, MOST_QUERIES, look, names_on, shown, told, words_of
from tests.prompts.fleet.fleet_stage import built, crowd, fetched
from tests.prompts.module_stage import (  # noqa: F401  # fixtures
    Standing,
    a_copy_of_the_stage,
    alice_logged_in,
    bob_logged_in,
    standing,
    standing_alice,
    standing_bob,
    standing_workspace,
)

pytestmark = pytest.mark.django_db
FEW_QUESTIONS = ("", "?q=mate&channel=line-1", "?state=over&sort=tokens")
OTHER_QUESTIONS = ("?page=2", "?state=stale", "?state=ahead&sort=problems", "?state=ahead&sort=changed")


def set_stage(standing: Standing) -> None:  # noqa: F811  # what the fixture of that name is given
    vera = make_user("Vera")
    join(standing.workspace, vera, Role.VIEWER)
    standing.let_in("Vera", vera)


# --- very many -----------------------------------------------------------------------------------------


def test_pages_hold_thirty_agents_and_one_beyond_the_end_is_the_last(as_bob, workspace):
    crowd(workspace, 33, 1)
    assert len(shown(as_bob)) == 30
    second = look(as_bob, "?page=2")
    assert names_on(second) == ["Mate 030", "Mate 031", "Mate 032"]
    assert "31–33 of 33" in words_of(second)
    assert shown(as_bob, "?page=99") == names_on(second)
    assert len(shown(as_bob, "?page=nonsense")) == 30


@pytest.mark.parametrize(
    ("agents", "questions"),
    [
        (32, FEW_QUESTIONS),
        pytest.param(70, FEW_QUESTIONS + OTHER_QUESTIONS, marks=pytest.mark.hard),
    ],
)
def test_a_large_fleet_takes_few_queries_and_little_room(as_bob, workspace, agents, questions):
    prompts = crowd(workspace, agents, 6)
    key, _ = create_key(workspace, "Reception", {}, by=BY)
    for prompt in prompts[:20]:
        fetched(prompt, key)
    BuildCause(workspace=workspace, agent=prompts[0].agent, cause={}).save()
    for asked in questions:
        with CaptureQueriesContext(connection) as caught:
            answer = look(as_bob, asked)
        assert len(caught) <= MOST_QUERIES, "\n".join(query["sql"][:200] for query in caught)
        assert len(gzip.compress(answer.content)) < 100_000, asked


def test_the_page_before_a_roll_back_takes_few_queries(as_alice, workspace):
    prompts = crowd(workspace, 30, 2)
    labels = PromptLabel.objects.in_workspace(workspace).filter(prompt__in=prompts)
    assert labels.count() == 60
    with CaptureQueriesContext(connection) as caught:
        as_alice.post(BULK, {"verb": "roll-back", "chosen": [prompt.pk for prompt in prompts]})
    assert len(caught) <= MOST_QUERIES


# --- the first run -------------------------------------------------------------------------------------


def test_an_empty_workspace_offers_three_ways_in(as_alice, as_bob, stage):
    page = words_of(look(as_alice))
    for words in ("Load the demo", "Import a folder", "Start blank", "First steps"):
        assert words in page
    assert "An owner or admin can load it." in words_of(look(as_bob))
    page = words_of(look(stage.client("Vera")))
    assert "An editor of this workspace can make the first one." in page
    assert "Start blank" not in page


def test_the_demo_is_loaded_into_an_empty_workspace_only(as_alice, as_bob, alice, workspace):
    assert as_bob.post(f"{HOME}fleet/demo/").status_code == 403
    [known] = [entry["text"] for entry in cast_told("memories") if entry["key"] == "storm-gate"]
    mine = make_memory(workspace, known, author_label=alice.email)
    answer = as_alice.post("/w/harbour/fleet/demo/", follow=True)
    assert "The demo is here" in told(answer)
    # What the cast replaces by words that stood here already is replaced by those.
    assert Memory.objects.in_workspace(workspace).filter(superseded_by=mine).exists()
    assert Agent.objects.in_workspace(workspace).count() == 7
    assert not AuditEvent.objects.in_workspace(workspace).exclude(actor=alice).exclude(actor=None).exists()
    answer = as_alice.post("/w/harbour/fleet/demo/", follow=True)
    assert "has agents already" in told(answer)
    assert Agent.objects.in_workspace(workspace).count() == 7


def test_a_workspace_called_nought_has_a_fleet_too(alice, as_alice):
    house = create_workspace("Nought", "0", owner=alice)
    agent = make_agent(house, "pilot", channels=[make_channel(house, "deck")])
    built(agent)
    [row] = as_alice.get("/w/0/").context["rows"]
    [(_channel, cell)] = row.cells
    assert cell.timeline_url == "/w/0/agents/pilot/versions/?channel=deck"
    assert as_alice.get(cell.url).status_code == 200

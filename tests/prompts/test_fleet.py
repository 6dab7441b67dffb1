"""The fleet: agents and channels with how they stand, what waits, and what is done with many at once."""

import gzip
import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from personas.models import Agent, AuditEvent, Memory
from personas.queueing import breaker
from personas.roles import Role
from personas.services.keys import create_key
from personas.services.records import archive_record, edit_record
from personas.services.workspaces import create_workspace
from prompts.demo.load import told as cast_told
from prompts.fleet.bots import bots_of
from prompts.fleet.serving_chart import HEIGHT, served_per_hour
from prompts.models import AgentPrompt, BuildCause, PromptLabel, Release
from prompts.services.labelling import protect_label, roll_back
from prompts.services.settings import put_settings
from tests.factories import BY, join, make_agent, make_channel, make_memory, make_soul, make_user, signed_in
from tests.prompts.fleet_stage import built, crowd, fetched, production_of, prompt_of

pytestmark = pytest.mark.django_db
HOME = "/w/harbour/"
BULK = "/w/harbour/fleet/bulk/"
MOST_QUERIES = 12


@pytest.fixture
def channels(workspace):
    return [make_channel(workspace, "deck"), make_channel(workspace, "bridge")]


@pytest.fixture
def soul(workspace):
    return make_soul(workspace, text="Be brave.")


@pytest.fixture
def pilot(workspace, channels, soul):
    """Automatic, on both channels."""
    agent = make_agent(workspace, "pilot", soul=soul, channels=channels)
    built(agent)
    return agent


@pytest.fixture
def careful(workspace, channels, soul):
    """Reviewed, on deck only; nothing of it is released."""
    agent = make_agent(
        workspace, "careful", soul=soul, channels=channels[:1], release_policy="reviewed", layout="nova"
    )
    built(agent)
    return agent


@pytest.fixture
def viewers(workspace):
    person = make_user("Vera")
    join(workspace, person, Role.VIEWER)
    return signed_in(person)


@pytest.fixture
def reviewers(workspace):
    person = make_user("Rita")
    join(workspace, person, Role.REVIEWER)
    return signed_in(person)


def reword(soul, text, *agents):
    soul.refresh_from_db()
    edit_record(soul, {"text": text}, expected=soul.revision, by=BY)
    built(*agents)


def shown(client, asked=""):
    """Names of the agents on the page, in their order."""
    answer = client.get(f"{HOME}{asked}")
    assert answer.status_code == 200
    return [row.agent.name for row in answer.context["rows"]] if "rows" in answer.context else []


def cell(client, slug, channel="deck", asked=""):
    rows = client.get(f"{HOME}{asked}").context["rows"]
    [row] = [row for row in rows if row.agent.slug == slug]
    return next(cell for place, cell in row.cells if place.slug == channel)


def flags(client, slug, channel="deck"):
    return [flag.words for flag in cell(client, slug, channel).flags]


def told(answer):
    return " ".join(str(message) for message in answer.context["messages"])


def bulk(client, verb, *prompts, **more):
    data = {"verb": verb, "chosen": [getattr(one, "pk", one) for one in prompts]} | more
    return client.post(BULK, data, follow=True)


# --- the matrix ----------------------------------------------------------------------------------------


def test_a_cell_shows_what_production_is_at(as_bob, pilot, careful):
    one = cell(as_bob, "pilot")
    latest = prompt_of(pilot).latest
    assert latest is not None
    assert (one.number, one.tokens, one.flags, one.bots) == (1, latest.tokens, [], 0)
    assert as_bob.get(one.url).status_code == 200
    assert cell(as_bob, "careful", "bridge") is None
    assert flags(as_bob, "careful") == ["Not released"]
    page = as_bob.get(HOME).content.decode()
    assert "Does not speak here" in page
    assert "nova" in page


def test_what_is_wrong_is_said_in_words(as_bob, by_alice, workspace, pilot, soul):
    reword(soul, "Be wise.", pilot)
    roll_back([prompt_of(pilot)], by=by_alice, note="Too wise.")
    assert flags(as_bob, "pilot") == ["Held back", "1 ahead"]
    assert flags(as_bob, "pilot", "bridge") == []
    put_settings(workspace, {"token_budget": 10}, expected=0, by=BY)
    assert "Over budget" in flags(as_bob, "pilot", "bridge")
    Agent.unscoped.filter(pk=pilot.pk).update(layout="harbour")
    built(pilot)
    assert flags(as_bob, "pilot")[0] == "Not built"
    assert "There is no layout “harbour” any more." in as_bob.get(HOME).content.decode()
    BuildCause(workspace=workspace, agent=pilot, cause={}).save()
    answer = as_bob.get(HOME)
    assert "0 of 2" in answer.content.decode()
    assert flags(as_bob, "pilot", "bridge")[-1] == "Rebuilding"


def test_the_nearest_budget_counts(as_bob, workspace, pilot, channels):
    put_settings(workspace, {"token_budget": 900_000}, expected=0, by=BY)
    assert cell(as_bob, "pilot").budget == 900_000
    put_settings(workspace, {"token_budget": 800_000}, agent=pilot, expected=0, by=BY)
    assert cell(as_bob, "pilot").budget == 800_000
    put_settings(workspace, {"token_budget": 700_000}, channel=channels[0], expected=0, by=BY)
    assert cell(as_bob, "pilot").budget == 700_000
    assert cell(as_bob, "pilot", "bridge").budget == 800_000


def test_each_state_finds_its_own(as_bob, workspace, pilot, careful, soul):
    key, _ = create_key(workspace, "Reception", {}, by=BY)
    fetched(prompt_of(pilot), key)
    reword(soul, "Be wise.", pilot)
    roll_back([prompt_of(pilot, "bridge")], by=BY, note="Too wise.")
    AgentPrompt.unscoped.filter(agent=careful).update(problem="Not built: no.")
    put_settings(workspace, {"token_budget": 1}, agent=careful, expected=0, by=BY)
    found = {
        state: shown(as_bob, f"?state={state}")
        for state in ("", "ahead", "problems", "over", "stale", "held", "nonsense")
    }
    both = ["Careful", "Pilot"]
    assert found == {
        "": both,
        "ahead": both,
        "problems": ["Careful"],
        "over": ["Careful"],
        "stale": ["Pilot"],
        "held": ["Pilot"],
        "nonsense": both,
    }
    assert not cell(as_bob, "pilot", "deck", "?state=held").is_match
    assert cell(as_bob, "pilot", "bridge", "?state=held").is_match


def test_filters_and_sorting_come_from_the_address(as_bob, pilot, careful, soul):
    assert shown(as_bob, "?q=CARE") == ["Careful"]
    assert shown(as_bob, "?layout=nova") == ["Careful"]
    assert shown(as_bob, "?channel=bridge") == ["Pilot"]
    assert shown(as_bob, "?channel=bridge&state=held") == []
    assert shown(as_bob, "?q=%00nobody") == []
    reword(soul, "Be wise.", pilot)
    assert shown(as_bob, "?sort=changed") == ["Pilot", "Careful"]
    assert shown(as_bob, "?sort=tokens")[0] == "Pilot"
    AgentPrompt.unscoped.filter(agent=pilot).update(problem="Not built: no.")
    assert shown(as_bob, "?sort=problems") == ["Pilot", "Careful"]
    answer = as_bob.get(f"{HOME}?channel=bridge")
    assert [channel.slug for channel in answer.context["columns"]] == ["bridge"]


def test_an_agent_without_a_channel_says_so_and_an_archived_one_is_gone(as_bob, workspace, pilot):
    quiet = make_agent(workspace, "quiet")
    built(quiet)
    assert "Speaks on no channel yet." in as_bob.get(HOME).content.decode()
    archive_record(quiet, by=BY)
    assert shown(as_bob) == ["Pilot"]


def test_pages_hold_thirty_agents_and_one_beyond_the_end_is_the_last(as_bob, workspace):
    crowd(workspace, 60, 1)
    assert len(shown(as_bob)) == 30
    assert shown(as_bob, "?page=2") == [f"Mate {number:03}" for number in range(30, 60)]
    assert shown(as_bob, "?page=99") == shown(as_bob, "?page=2")
    assert "31–60 of 60" in as_bob.get(f"{HOME}?page=2").content.decode()
    assert len(shown(as_bob, "?page=nonsense")) == 30


def test_a_large_fleet_takes_few_queries_and_little_room(as_bob, workspace):
    prompts = crowd(workspace, 70, 6)
    key, _ = create_key(workspace, "Reception", {}, by=BY)
    for prompt in prompts[:20]:
        fetched(prompt, key)
    BuildCause(workspace=workspace, agent=prompts[0].agent, cause={}).save()
    # The first page of all notes when somebody came.
    as_bob.get(HOME)
    cases = ("", "?page=2", "?q=mate&channel=line-1", "?state=stale", "?state=over&sort=tokens")
    for asked in (*cases, "?state=ahead&sort=problems", "?state=ahead&sort=changed"):
        with CaptureQueriesContext(connection) as caught:
            answer = as_bob.get(f"{HOME}{asked}")
        assert answer.status_code == 200
        assert len(caught) <= MOST_QUERIES, "\n".join(query["sql"][:200] for query in caught)
        assert len(gzip.compress(answer.content)) < 100_000


# --- bots and figures ----------------------------------------------------------------------------------


def test_bots_are_counted_by_the_hour_and_told_behind_by_the_day(as_bob, workspace, pilot, soul):
    key, _ = create_key(workspace, "Reception", {}, by=BY)
    other, _ = create_key(workspace, "Kiosk", {}, by=BY)
    deck, bridge, now = prompt_of(pilot), prompt_of(pilot, "bridge"), timezone.now()
    for _ in range(3):
        fetched(deck, key)
    fetched(deck, other, label="latest")
    fetched(bridge, other, at=now - timedelta(hours=3))
    fetched(bridge, other, at=now - timedelta(hours=30))
    fetched(bridge, other, at=now - timedelta(hours=2), label="production@2020-01-01", version_id=0)
    found = bots_of(workspace)
    assert (found.lately, found.behind) == ({deck.pk: 2}, {})
    reword(soul, "Be wise.", pilot)
    found = bots_of(workspace)
    assert (found.behind, found.stale_count) == ({deck.pk: 2, bridge.pk: 1}, 2)
    fetched(prompt_of(pilot), key)
    assert bots_of(workspace).behind == {deck.pk: 1, bridge.pk: 1}
    assert "1 bot behind" in flags(as_bob, "pilot")
    assert cell(as_bob, "pilot").bots == 2
    other.revoked_at = now
    other.save()
    assert bots_of(workspace).behind == {}


def test_bots_of_another_workspace_are_not_seen(workspace, elsewhere, pilot):
    key, _ = create_key(elsewhere, "Spy", {}, by=BY)
    fetched(prompt_of(pilot), key, workspace_id=elsewhere.pk)
    assert bots_of(workspace).lately == {}
    assert served_per_hour(workspace).total == 0


def test_what_was_served_is_drawn_by_the_hour(as_bob, workspace, pilot):
    key, _ = create_key(workspace, "Reception", {}, by=BY)
    prompt, now = prompt_of(pilot), timezone.now().replace(minute=30)
    for back, count in ((0, 1), (1, 4), (23, 2), (24, 7)):
        for _ in range(count):
            fetched(prompt, key, at=now - timedelta(hours=back))
    chart = served_per_hour(workspace, now)
    assert [bar.count for bar in chart.bars] == [2, *[0] * 21, 4, 1]
    assert (chart.total, chart.busiest.count, chart.busiest.height) == (7, 4, HEIGHT)
    assert [bar.height for bar in chart.bars[:2]] == [HEIGHT / 2, 0]
    page = as_bob.get(HOME).content.decode()
    assert re.search(r"<title[^>]*>Prompts served per hour</title>", page)
    assert "style=" not in page


def test_what_waits_leads_to_where_it_is_dealt_with(as_bob, workspace, pilot, careful):
    assert "Nothing waits for you." in as_bob.get(HOME).content.decode()
    make_memory(workspace, state="proposed")
    AgentPrompt.unscoped.filter(agent=pilot).update(problem="Not built: no.")
    rows = as_bob.get(HOME).context["waiting"]
    assert [(row.count, row.words) for row in rows] == [(2, "prompts not built"), (1, "memory to approve")]
    for row in rows:
        assert as_bob.get(row.url).status_code == 200


# --- many at once --------------------------------------------------------------------------------------


def test_chosen_prompts_are_ticked_for_a_release(as_bob, pilot, careful):
    answer = bulk(as_bob, "release", prompt_of(careful), prompt_of(pilot))
    assert [one["is_ticked"] for one in answer.context["choices"]] == [True]
    page = answer.content.decode()
    assert "You chose 2 prompts. 1 is in production as it is." in page
    address = answer.redirect_chain[-1][0]
    choice = answer.context["choices"][0]["value"]
    as_bob.post(address, {"message": "First words", "prompts": [choice]})
    assert Release.unscoped.get().items.count() == 1


def test_picks_that_are_no_ids_of_ours_pick_nothing(as_bob, careful):
    for said in ("abc", "9" * 40, "1,,x", "٣"):
        assert as_bob.get(f"/w/harbour/releases/new/?prompts={said}").status_code == 200


def test_production_goes_back_on_many_at_once_after_a_page_that_says_what_moves(
    as_alice, pilot, careful, soul
):
    reword(soul, "Be wise.", pilot, careful)
    prompts = [prompt_of(pilot), prompt_of(pilot, "bridge"), prompt_of(careful)]
    answer = bulk(as_alice, "roll-back", *prompts)
    page = answer.content.decode()
    assert "Roll back 2 prompts in production" in page
    assert "Nothing is in production yet." in page
    assert production_of(pilot) == 2
    seen = [one.seen for one in answer.context["moving"]]
    answer = bulk(as_alice, "roll-back", *prompts[:2], seen=seen)
    assert answer.status_code == 422
    assert "This field is required" in answer.content.decode()
    answer = bulk(as_alice, "roll-back", *prompts[:2], seen=seen, note="Too wise.")
    assert "Rolled 2 prompts back in production." in told(answer)
    assert [production_of(pilot), production_of(pilot, "bridge")] == [1, 1]
    assert AgentPrompt.unscoped.filter(is_held=True).count() == 2
    assert AuditEvent.unscoped.filter(verb="rolled back").count() == 2


def test_a_roll_back_that_was_overtaken_is_shown_again(as_alice, by_alice, pilot, soul):
    reword(soul, "Be wise.", pilot)
    prompt = prompt_of(pilot)
    seen = [one.seen for one in bulk(as_alice, "roll-back", prompt).context["moving"]]
    reword(soul, "Be wiser.", pilot)
    answer = bulk(as_alice, "roll-back", prompt, seen=seen, note="Too wise.")
    assert (answer.status_code, production_of(pilot)) == (422, 3)
    assert "Something moved after you looked." in answer.content.decode()


def test_a_refusal_of_the_verb_stands_on_the_page_and_nothing_moves(
    reviewers, workspace, by_alice, pilot, soul
):
    reword(soul, "Be wise.", pilot)
    prompt = prompt_of(pilot)
    protect_label(workspace, "production", protected=True, by=by_alice)
    seen = [one.seen for one in bulk(reviewers, "roll-back", prompt).context["moving"]]
    answer = bulk(reviewers, "roll-back", prompt, seen=seen, note="Too wise.")
    assert "only owners move it" in answer.content.decode()
    assert production_of(pilot) == 2


def test_nothing_to_go_back_to_is_said_and_nothing_moves(as_alice, pilot):
    answer = bulk(as_alice, "roll-back", prompt_of(pilot))
    assert "production was never anywhere before" in told(answer)


def test_the_page_before_a_roll_back_takes_few_queries(as_alice, workspace):
    prompts = crowd(workspace, 30, 2)
    labels = PromptLabel.objects.in_workspace(workspace).filter(prompt__in=prompts)
    assert labels.count() == 60
    with CaptureQueriesContext(connection) as caught:
        as_alice.post(BULK, {"verb": "roll-back", "chosen": [prompt.pk for prompt in prompts]})
    assert len(caught) <= MOST_QUERIES


@pytest.fixture
def no_workers(monkeypatch):
    """Nothing reaches a worker, so that what was asked for stays to be seen."""
    monkeypatch.setattr(breaker, "open_until", float("inf"))


@pytest.mark.usefixtures("no_workers")
def test_few_are_rebuilt_at_once_and_many_by_the_workers(as_bob, pilot, careful, soul, settings):
    soul.refresh_from_db()
    edit_record(soul, {"text": "Be wise."}, expected=soul.revision, by=BY)
    answer = bulk(as_bob, "rebuild", prompt_of(pilot))
    assert "Built 2 prompts anew: 2 have other words now." in told(answer)
    assert production_of(pilot) == 2
    assert "every word is as it was" in told(bulk(as_bob, "rebuild", prompt_of(pilot)))
    settings.DRAMATIS_BUILD_AT_ONCE = 1
    answer = bulk(as_bob, "rebuild", prompt_of(pilot), prompt_of(careful))
    assert "3 prompts are being rebuilt." in told(answer)
    assert "0 of 3" in answer.content.decode()
    causes = (
        BuildCause.unscoped.filter(cause__kind="rebuild").order_by("agent").values_list("agent", "cause__by")
    )
    assert list(causes) == [(pilot.pk, "bob@example.com"), (careful.pk, "bob@example.com")]


def test_a_failed_rebuild_is_told(as_bob, pilot):
    Agent.unscoped.filter(pk=pilot.pk).update(layout="harbour")
    assert "2 prompts could not be built and stay as they were." in told(
        bulk(as_bob, "rebuild", prompt_of(pilot))
    )


@pytest.mark.parametrize("verb", ["release", "rebuild", "roll-back"])
def test_one_foreign_or_unknown_id_refuses_all(verb, as_alice, pilot, elsewhere):
    theirs = make_agent(elsewhere, "spy", channels=[make_channel(elsewhere, "deck")])
    built(theirs)
    gone = prompt_of(pilot, "bridge")
    AgentPrompt.unscoped.filter(pk=gone.pk).update(is_live=False)
    for stranger in (prompt_of(theirs).pk, gone.pk, 2**40, "9" * 40, "x", "-1", "٣"):
        assert bulk(as_alice, verb, prompt_of(pilot), stranger).status_code == 404
    assert not Release.unscoped.exists()


def test_nothing_chosen_is_said_and_an_unknown_verb_is_not_there(as_alice, pilot):
    answer = bulk(as_alice, "rebuild", back="/w/harbour/?q=pilot")
    assert "Choose at least one prompt." in told(answer)
    assert answer.redirect_chain[-1][0] == "/w/harbour/?q=pilot"
    assert bulk(as_alice, "erase", prompt_of(pilot)).status_code == 404
    assert as_alice.get(BULK).status_code == 405


def test_each_verb_takes_its_own_permission(as_bob, viewers, reviewers, pilot, soul):
    reword(soul, "Be wise.", pilot)
    prompt = prompt_of(pilot)
    allowed = {
        (name, verb): bulk(client, verb, prompt).status_code
        for name, client in (("editor", as_bob), ("reviewer", reviewers), ("viewer", viewers))
        for verb in ("release", "rebuild", "roll-back")
    }
    assert {pair for pair, status in allowed.items() if status == 200} == {
        ("editor", "release"),
        ("editor", "rebuild"),
        ("reviewer", "roll-back"),
    }
    assert set(allowed.values()) == {200, 403}
    assert "data-pick" not in viewers.get(HOME).content.decode()


# --- the first run -------------------------------------------------------------------------------------


def test_an_empty_workspace_offers_three_ways_in(as_alice, as_bob, viewers):
    page = as_alice.get(HOME).content.decode()
    for words in ("Load the demo", "Import a folder", "Start blank", "First steps"):
        assert words in page
    assert "An owner or admin can load it." in as_bob.get(HOME).content.decode()
    page = viewers.get(HOME).content.decode()
    assert "An editor of this workspace can make the first one." in page
    assert "Start blank" not in page


def test_the_demo_is_loaded_into_an_empty_workspace_only(as_alice, as_bob, alice, workspace):
    assert as_bob.post("/w/harbour/fleet/demo/").status_code == 403
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


def test_the_first_steps_tick_themselves_and_go_when_done(as_alice, as_bob, workspace, pilot):
    def done():
        return {step.words: step.is_done for step in as_alice.get(HOME).context.get("steps") or []}

    assert done()["Make the first agent"]
    assert done()["Let it speak on a channel"]
    assert not done()["Make a key for a bot"]
    assert done()["Invite a second person"]
    key, _ = create_key(workspace, "Reception", {}, by=BY)
    assert done()["Make a key for a bot"]
    fetched(prompt_of(pilot), key)
    assert done() == {}


def test_the_first_steps_can_be_put_away_by_each_person_and_for_one_workspace(as_alice, as_bob, pilot):
    assert "First steps" in as_alice.get(HOME).content.decode()
    answer = as_alice.post("/w/harbour/fleet/steps/dismiss/")
    assert answer.cookies["dr_no_steps"]["path"] == HOME
    assert "First steps" not in as_alice.get(HOME).content.decode()
    assert "First steps" in as_bob.get(HOME).content.decode()


def test_a_workspace_called_nought_has_a_fleet_too(alice, as_alice):
    house = create_workspace("Nought", "0", owner=alice)
    agent = make_agent(house, "pilot", channels=[make_channel(house, "deck")])
    built(agent)
    [row] = as_alice.get("/w/0/").context["rows"]
    [(_channel, cell)] = row.cells
    assert cell.timeline == "/w/0/agents/pilot/versions/?channel=deck"
    assert as_alice.get(cell.url).status_code == 200


def test_a_stranger_finds_nothing(as_mallory, pilot):
    prompt = prompt_of(pilot)
    assert as_mallory.get(HOME).status_code == 404
    assert bulk(as_mallory, "rebuild", prompt).status_code == 404
    for path in ("fleet/demo/", "fleet/steps/dismiss/"):
        assert as_mallory.post(f"{HOME}{path}").status_code == 404

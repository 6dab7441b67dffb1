"""The pages of one agent: who it is, what it knows, what it may call, and the order of its duties."""

import pytest

from personas.errors import DomainError
from personas.models import Agent, Channel, Memory, MemoryState, Responsibility, Workspace
from personas.records.services import archive_record
from personas.roles import Role
from personas.work.services import order_responsibilities
from prompts.builds.services import rebuild_agents
from prompts.settings.services import put_settings
from tests.factories import (
    BY,
    join,
    make_agent,
    make_channel,
    make_identity,
    make_memory,
    make_responsibility,
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

pytestmark = pytest.mark.django_db
MOST_QUERIES = 12
TABS = ("", "memory/", "skills/", "tools/", "context/", "channels/", "versions/", "activity/")


@pytest.fixture(scope="module")
def crew(house, django_db_blocker):
    """A pilot on deck, for all tests."""
    with django_db_blocker.unblock():
        workspace = Workspace.objects.get(pk=house.workspace)
        identity = make_identity(workspace, "Fox", name="Mira", creature="fox", vibe="dry", emoji="🦊")
        soul, deck = make_soul(workspace, text="# Calm\n\nNever hurry."), make_channel(workspace, "deck")
        pilot = make_agent(
            workspace, "pilot", identity=identity, soul=soul, channels=[deck], instructions="Steer."
        )
        rebuild_agents(workspace, [pilot.pk])
        return pilot.pk


@pytest.fixture
def pilot(crew, workspace):
    return Agent.objects.in_workspace(workspace).get(pk=crew)


@pytest.fixture
def deck(crew, workspace):
    return Channel.objects.in_workspace(workspace).get(slug="deck")


@pytest.fixture
def as_viewer(workspace):
    viewer = make_user("Vera")
    join(workspace, viewer, Role.VIEWER)
    return signed_in(viewer)


def page(client, path, status=200):
    answer = client.get(f"/w/harbour/{path}")
    assert answer.status_code == status, path
    return answer.content.decode()


def titles(agent):
    return list(agent.responsibilities.filter(archived_at=None).values_list("title", flat=True))


def order(client, agent, duties):
    said = {"agent": agent.slug, "duty": [duty.pk for duty in duties]}
    return client.post("/w/harbour/responsibilities/order/", said)


# --- the header and the tabs ---------------------------------------------------------------------------


def test_a_page_below_a_tab_has_the_card_too(as_bob, pilot):
    number = pilot.prompts.get().pk
    said = page(as_bob, f"prompts/{number}/versions/1/")
    assert 'class="dr-agent"' in said
    assert 'aria-current="page">Versions' in said
    assert said.count("<h1>") == 1


def test_every_tab_begins_with_the_same_card_and_asks_few_questions(
    as_bob, workspace, deck, pilot, django_assert_max_num_queries
):
    for number in range(3):
        make_responsibility(pilot)
        make_memory(workspace, f"Fact {number}")
        make_memory(workspace, f"Own fact {number}", agent=pilot)
        make_agent(workspace, parent=pilot, soul=pilot.soul, channels=[deck])
    rebuild_agents(workspace, list(Agent.objects.in_workspace(workspace).values_list("pk", flat=True)))
    for tab in TABS:
        begins_with_the_card(page(as_bob, f"agents/pilot/{tab}"), tab)
        if tab != "versions/":
            with django_assert_max_num_queries(MOST_QUERIES, info=tab):
                page(as_bob, f"agents/pilot/{tab}")


def begins_with_the_card(said, tab):
    card = said[said.index('class="dr-agent"') : said.index("dr-agent-tabs")]
    for words in ("Pilot", "pilot", "Mira", "fox", "dry", "dramatis", "Automatic", "🦊"):
        assert words in card, tab
    assert said.count("<h1>") == 1, tab
    current = said[said.index("dr-agent-tabs") :].split('aria-current="page">')[1].split("<")[0]
    assert f"{current.lower()}/" == (tab or "persona/")


def test_a_viewer_reads_every_tab_and_is_offered_no_change(as_viewer, workspace, pilot):
    make_responsibility(pilot, "Keep the log")
    for tab in ("", "memory/", "skills/", "tools/", "channels/", "activity/"):
        said = page(as_viewer, f"agents/pilot/{tab}")
        main = said[said.index('class="dr-agent"') : said.index("</main>")]
        assert 'method="post"' not in main, tab
        assert "prompt-settings/workspace" not in main, tab
        assert "data-sortable" not in main, tab


def test_an_archived_agent_can_only_be_restored(as_bob, pilot, by_alice):
    archive_record(pilot, by=by_alice)
    said = page(as_bob, "agents/pilot/")
    assert "Archived" in said
    assert "agents/pilot/restore/" in said
    assert "agents/pilot/edit/" not in said


def test_strangers_find_no_tab(as_mallory, pilot):
    for tab in TABS:
        page(as_mallory, f"agents/pilot/{tab}", status=404)


def test_an_agent_that_is_not_there_has_no_tab(as_bob):
    for tab in TABS:
        page(as_bob, f"agents/nobody/{tab}", status=404)


# --- persona -------------------------------------------------------------------------------------------


def test_a_part_says_how_many_share_it(as_bob, workspace, pilot):
    assert "of its own" in page(as_bob, "agents/pilot/")
    make_agent(workspace, "mate", soul=pilot.soul)
    said = page(as_bob, "agents/pilot/")
    assert "shared by 2 agents" in said
    assert "Never hurry." in said
    assert "# Calm" not in said


def test_an_agent_without_a_soul_shows_the_built_in_one(as_bob, workspace):
    make_agent(workspace, "plain")
    said = page(as_bob, "agents/plain/")
    assert "The built-in default soul" in said
    assert "built-in default" in said


def test_a_value_names_the_level_that_it_came_from(as_bob, workspace, pilot, deck):
    def put(values, **level):
        put_settings(workspace, values, expected=0, by=BY, **level)

    assert "4,000" not in page(as_bob, "agents/pilot/")
    put({"token_budget": 4_000, "mode": "single_turn"})
    put({"mode": "agent"}, agent=pilot)
    put({"token_budget": 900}, channel=deck)
    said = page(as_bob, "agents/pilot/")
    values = said[said.index("Settings in force") :]
    budget = values[values.index("Token budget") : values.index("Ledger kept for")]
    assert "4,000" in budget
    assert "prompt-settings/workspace/" in budget
    assert "Otherwise on Deck" in budget
    mode = values[values.index("<dt>Mode") : values.index("<dt>Mission")]
    assert "prompt-settings/agents/pilot/" in mode
    assert "24 months" in values


# --- the order of duties -------------------------------------------------------------------------------


def test_duties_are_put_in_a_new_order_at_once(as_bob, pilot):
    one, two, three = (make_responsibility(pilot, title) for title in ("One", "Two", "Three"))
    assert order(as_bob, pilot, [three, one, two]).status_code == 204
    assert titles(pilot) == ["Three", "One", "Two"]
    two.refresh_from_db()
    assert (two.position, two.revision) == (2, 2)


def test_an_order_that_leaves_one_out_or_names_a_stranger_is_refused(as_bob, workspace, pilot, by_alice):
    one, two = (make_responsibility(pilot, title) for title in ("One", "Two"))
    other = make_responsibility(make_agent(workspace, "mate"), "Elsewhere")
    for duties in ([one], [one, two, other], [one, one], [one, other], []):
        answer = order(as_bob, pilot, duties)
        assert answer.status_code == 409
        assert "have changed meanwhile" in answer.content.decode()
    with pytest.raises(DomainError):
        order_responsibilities(pilot, [other.pk, one.pk], by=by_alice)
    assert titles(pilot) == ["One", "Two"]


def test_an_order_needs_the_right_to_edit_and_an_agent(as_viewer, as_bob, as_mallory, pilot):
    duty = make_responsibility(pilot, "One")
    assert order(as_viewer, pilot, [duty]).status_code == 403
    assert order(as_mallory, pilot, [duty]).status_code == 404
    path = "/w/harbour/responsibilities/order/"
    assert as_bob.post(path, {"agent": "nobody", "duty": ["1"]}).status_code == 404
    assert as_bob.post(path, {"agent": "pilot", "duty": ["1" * 40, "x", "²"]}).status_code == 409
    assert as_bob.get(path).status_code == 405


def test_the_same_order_again_changes_nothing(as_bob, pilot):
    duties = [make_responsibility(pilot, title) for title in ("One", "Two")]
    assert order(as_bob, pilot, duties).status_code == 204
    assert set(Responsibility.unscoped.values_list("revision", flat=True)) == {1}


# --- memory --------------------------------------------------------------------------------------------


def test_own_memories_come_before_shared_ones_and_others_stay_out(as_bob, workspace, pilot):
    make_memory(workspace, "Own fact.", agent=pilot)
    make_memory(workspace, "Shared fact.")
    make_memory(workspace, "Foreign fact.", agent=make_agent(workspace, "mate"))
    said = page(as_bob, "agents/pilot/memory/")
    assert said.index("Own fact.") < said.index("Shared fact.")
    assert "Foreign fact." not in said


def test_a_memory_tells_on_which_channels_bots_get_it(as_bob, workspace, pilot):
    make_memory(workspace, "Known fact.", agent=pilot)
    make_memory(workspace, "Guessed fact.", agent=pilot, state=MemoryState.PROPOSED)
    rebuild_agents(workspace, [pilot.pk])
    answer = as_bob.get("/w/harbour/agents/pilot/memory/")
    said = answer.content.decode()
    known = said[said.index("Known fact.") :]
    assert "Deck" in known[: known.index("</tr>")]
    guessed = said[said.index("Guessed fact.") :]
    assert "Deck" not in guessed[: guessed.index("</tr>")]


def test_state_and_owner_are_chosen_in_the_address(as_bob, workspace, pilot):
    make_memory(workspace, "Own fact.", agent=pilot)
    make_memory(workspace, "Shared fact.")
    make_memory(workspace, "Guess.", state=MemoryState.PROPOSED)

    def seen(query):
        rows = as_bob.get(f"/w/harbour/agents/pilot/memory/?{query}").context["page"].object_list
        return {memory.text for memory in rows}

    assert seen("whose=own") == {"Own fact."}
    assert seen("whose=shared") == {"Shared fact.", "Guess."}
    assert seen("state=proposed") == {"Guess."}
    assert seen("state=nonsense&whose=nonsense") == {"Own fact.", "Shared fact.", "Guess."}
    assert seen("q=shared") == {"Shared fact."}


def test_a_memory_is_added_or_proposed_on_the_spot(as_bob, pilot):
    for state in ("active", "proposed"):
        said = {"text": f"High water at six, {state}.", "state": state}
        answer = as_bob.post("/w/harbour/agents/pilot/memory/add/", said)
        assert answer.status_code == 302
        assert answer["Location"].endswith("/agents/pilot/memory/")
        memory = Memory.unscoped.get(state=state)
        assert (memory.agent, memory.author_label) == (pilot, "bob@example.com")


def test_a_memory_without_words_is_told_on_the_field(as_bob, as_viewer, pilot):
    answer = as_bob.post("/w/harbour/agents/pilot/memory/add/", {"text": "", "state": "active"})
    assert answer.status_code == 422
    assert "text" in answer.context["form"].errors
    assert as_viewer.post("/w/harbour/agents/pilot/memory/add/", {"text": "x"}).status_code == 403
    assert not Memory.unscoped.exists()


# --- tools ---------------------------------------------------------------------------------------------


def test_tools_tell_their_use_and_the_guidance_they_call_for(as_bob, workspace):
    shell, write = make_tool(workspace, "shell"), make_tool(workspace, "write_file", guidelines="Ask first.")
    make_agent(
        workspace, "smith", layout="opal", tools=[shell, write], planning_tools=[make_tool(workspace, "ls")]
    )
    make_agent(workspace, "mate", tools=[shell])
    said = page(as_bob, "agents/smith/tools/")
    assert said.index(">shell<") < said.index("For planning only") < said.index(">ls<")
    assert "shared by 2 agents" in said
    assert "Use the `write_file` tool to create new files." in said
    assert "Ask first." in said
    assert "Says the tool itself:" in said


def test_a_layout_without_rules_says_so(as_bob, workspace):
    make_agent(workspace, "quiet", layout="nova", tools=[make_tool(workspace, "shell")])
    assert "says nothing about the use of single ones" in page(as_bob, "agents/quiet/tools/")
    make_agent(workspace, "bare")
    assert "No tools" in page(as_bob, "agents/bare/tools/")

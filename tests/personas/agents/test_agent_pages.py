"""The tabs of the agent page, and the order of responsibilities."""

import pytest

from personas.errors import DomainError
from personas.models import Agent, Channel, Memory, MemoryStatus, Responsibility
from personas.records.services import archive_record
from personas.roles import Role
from personas.work.services import order_responsibilities
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.settings.services import put_settings
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
MOST_QUERIES = 14
TABS = ("", "memory/", "skills/", "tools/", "context/", "channels/", "versions/", "activity/")


@pytest.fixture(scope="module")
def pilot_id(cast, django_db_blocker):
    """Create an agent with one channel, shared by all tests of the module."""
    with django_db_blocker.unblock():
        workspace = cast.workspace
        identity = make_identity(
            workspace, "Fox", display_name="Mira", creature="fox", vibe="dry", emoji="🦊"
        )
        soul, deck = make_soul(workspace, text="# Calm\n\nNever hurry."), make_channel(workspace, "deck")
        pilot = make_agent(
            workspace, "pilot", identity=identity, soul=soul, channels=[deck], instructions="Steer."
        )
        rebuild_agents(workspace, [pilot.pk])
        return pilot.pk


@pytest.fixture
def pilot(pilot_id, workspace):
    return Agent.objects.in_workspace(workspace).get(pk=pilot_id)


@pytest.fixture
def deck(pilot_id, workspace):
    return Channel.objects.in_workspace(workspace).get(slug="deck")


@pytest.fixture
def as_viewer(workspace):
    viewer = make_user("Vera")
    join(workspace, viewer, Role.VIEWER)
    return signed_in(viewer)


def get_page(client, path, status=200):
    answer = client.get(f"/w/harbour/{path}")
    assert answer.status_code == status, path
    return answer.content.decode()


def list_titles(agent):
    return list(agent.responsibilities.filter(archived_at=None).values_list("title", flat=True))


def post_order(client, agent, responsibilities):
    data = {"agent": agent.slug, "duty": [row.pk for row in responsibilities]}
    return client.post("/w/harbour/responsibilities/order/", data)


# --- the header and the tabs ---------------------------------------------------------------------------


def test_a_page_below_a_tab_has_the_header_card(as_bob, pilot):
    number = pilot.prompts.get().pk
    html = get_page(as_bob, f"prompts/{number}/versions/1/")
    assert 'class="dr-agent"' in html
    assert 'aria-current="page">Versions' in html
    assert html.count("<h1>") == 1


@pytest.mark.slow
def test_every_tab_has_the_same_header_card_and_needs_few_queries(
    as_bob, workspace, deck, pilot, django_assert_max_num_queries
):
    for number in range(3):
        make_responsibility(pilot)
        make_memory(workspace, f"Fact {number}")
        make_memory(workspace, f"Own fact {number}", agent=pilot)
        make_agent(workspace, parent=pilot, soul=pilot.soul, channels=[deck])
    rebuild_agents(workspace, list(Agent.objects.in_workspace(workspace).values_list("pk", flat=True)))
    for tab in TABS:
        check_header_card(get_page(as_bob, f"agents/pilot/{tab}"), tab)
        if tab != "versions/":
            with django_assert_max_num_queries(MOST_QUERIES, info=tab):
                get_page(as_bob, f"agents/pilot/{tab}")


def check_header_card(html, tab):
    card = html[html.index('class="dr-agent"') : html.index("dr-agent-tabs")]
    for text in ("Pilot", "pilot", "Mira", "fox", "dry", "dramatis", "Automatic", "🦊"):
        assert text in card, tab
    assert html.count("<h1>") == 1, tab
    current = html[html.index("dr-agent-tabs") :].split('aria-current="page">')[1].split("<")[0]
    assert f"{current.lower()}/" == (tab or "persona/")


@pytest.mark.slow
def test_a_viewer_reads_every_tab_and_is_offered_no_change(as_viewer, workspace, pilot):
    make_responsibility(pilot, "Keep the log")
    for tab in ("", "memory/", "skills/", "tools/", "channels/", "activity/"):
        html = get_page(as_viewer, f"agents/pilot/{tab}")
        main = html[html.index('class="dr-agent"') : html.index("</main>")]
        assert 'method="post"' not in main, tab
        assert "prompt-settings/workspace" not in main, tab
        assert "data-sortable" not in main, tab


def test_an_archived_agent_can_only_be_restored(as_bob, pilot, by_alice):
    archive_record(pilot, by=by_alice)
    html = get_page(as_bob, "agents/pilot/")
    assert "Archived" in html
    assert "agents/pilot/restore/" in html
    assert "agents/pilot/edit/" not in html


def test_tabs_answer_404_to_outsiders(as_mallory, pilot):
    for tab in TABS:
        get_page(as_mallory, f"agents/pilot/{tab}", status=404)


def test_tabs_of_a_missing_agent_answer_404(as_bob):
    for tab in TABS:
        get_page(as_bob, f"agents/nobody/{tab}", status=404)


# --- persona -------------------------------------------------------------------------------------------


def test_a_shared_record_shows_how_many_agents_use_it(as_bob, workspace, pilot):
    assert "only this agent" in get_page(as_bob, "agents/pilot/")
    make_agent(workspace, "mate", soul=pilot.soul)
    html = get_page(as_bob, "agents/pilot/")
    assert "shared by 2 agents" in html
    assert "Never hurry." in html
    assert "# Calm" not in html


def test_an_agent_without_a_soul_shows_the_built_in_one(as_bob, workspace):
    make_agent(workspace, "plain")
    html = get_page(as_bob, "agents/plain/")
    assert "Built-in default soul" in html
    assert "built-in default" in html


def test_an_effective_setting_names_the_level_it_comes_from(as_bob, workspace, pilot, deck):
    def set_level(values, **level):
        put_settings(workspace, values, expected=0, by=BY, **level)

    assert "4,000" not in get_page(as_bob, "agents/pilot/")
    set_level({"token_budget": 4_000, "mode": "single_turn"})
    set_level({"mode": "agent"}, agent=pilot)
    set_level({"token_budget": 900}, channel=deck)
    html = get_page(as_bob, "agents/pilot/")
    values = html[html.index("Effective settings") :]
    budget = values[values.index("Token budget") : values.index("Ledger retention")]
    assert "4,000" in budget
    assert "prompt-settings/workspace/" in budget
    assert "Overridden on Deck" in budget
    mode = values[values.index("<dt>Mode") : values.index("<dt>Mission")]
    assert "prompt-settings/agents/pilot/" in mode
    assert "24 months" in values


# --- order of responsibilities -------------------------------------------------------------------------


def test_responsibilities_are_reordered_in_one_request(as_bob, pilot):
    one, two, three = (make_responsibility(pilot, title) for title in ("One", "Two", "Three"))
    assert post_order(as_bob, pilot, [three, one, two]).status_code == 204
    assert list_titles(pilot) == ["Three", "One", "Two"]
    two.refresh_from_db()
    assert (two.position, two.revision) == (2, 2)


def test_an_incomplete_or_foreign_order_is_refused(as_bob, workspace, pilot, by_alice):
    one, two = (make_responsibility(pilot, title) for title in ("One", "Two"))
    other = make_responsibility(make_agent(workspace, "mate"), "Elsewhere")
    for responsibilities in ([one], [one, two, other], [one, one], [one, other], []):
        answer = post_order(as_bob, pilot, responsibilities)
        assert answer.status_code == 409
        assert (
            "The list must contain each of the agent's active responsibilities exactly once."
            in answer.content.decode()
        )
    with pytest.raises(DomainError):
        order_responsibilities(pilot, [other.pk, one.pk], by=by_alice)
    assert list_titles(pilot) == ["One", "Two"]


def test_reordering_requires_edit_permission_and_an_agent(as_viewer, as_bob, as_mallory, pilot):
    responsibility = make_responsibility(pilot, "One")
    assert post_order(as_viewer, pilot, [responsibility]).status_code == 403
    assert post_order(as_mallory, pilot, [responsibility]).status_code == 404
    path = "/w/harbour/responsibilities/order/"
    assert as_bob.post(path, {"agent": "nobody", "duty": ["1"]}).status_code == 404
    assert as_bob.post(path, {"agent": "pilot", "duty": ["1" * 40, "x", "²"]}).status_code == 409
    assert as_bob.get(path).status_code == 405


def test_the_same_order_again_changes_nothing(as_bob, pilot):
    responsibilities = [make_responsibility(pilot, title) for title in ("One", "Two")]
    assert post_order(as_bob, pilot, responsibilities).status_code == 204
    assert set(Responsibility.unscoped.values_list("revision", flat=True)) == {1}


# --- memory --------------------------------------------------------------------------------------------


def test_own_memories_come_before_shared_ones_and_others_stay_out(as_bob, workspace, pilot):
    make_memory(workspace, "Own fact.", agent=pilot)
    make_memory(workspace, "Shared fact.")
    make_memory(workspace, "Foreign fact.", agent=make_agent(workspace, "mate"))
    html = get_page(as_bob, "agents/pilot/memory/")
    assert html.index("Own fact.") < html.index("Shared fact.")
    assert "Foreign fact." not in html


def test_a_memory_shows_the_channels_whose_prompts_contain_it(as_bob, workspace, pilot):
    make_memory(workspace, "Known fact.", agent=pilot)
    make_memory(workspace, "Guessed fact.", agent=pilot, status=MemoryStatus.PROPOSED)
    rebuild_agents(workspace, [pilot.pk])
    answer = as_bob.get("/w/harbour/agents/pilot/memory/")
    html = answer.content.decode()
    known = html[html.index("Known fact.") :]
    assert "Deck" in known[: known.index("</tr>")]
    guessed = html[html.index("Guessed fact.") :]
    assert "Deck" not in guessed[: guessed.index("</tr>")]


@pytest.mark.slow
def test_memories_are_filtered_by_state_and_owner_in_the_query_string(as_bob, workspace, pilot):
    make_memory(workspace, "Own fact.", agent=pilot)
    make_memory(workspace, "Shared fact.")
    make_memory(workspace, "Guess.", status=MemoryStatus.PROPOSED)

    def list_texts(query):
        rows = as_bob.get(f"/w/harbour/agents/pilot/memory/?{query}").context["page"].object_list
        return {memory.text for memory in rows}

    assert list_texts("whose=own") == {"Own fact."}
    assert list_texts("whose=shared") == {"Shared fact.", "Guess."}
    assert list_texts("status=proposed") == {"Guess."}
    assert list_texts("state=nonsense&whose=nonsense") == {"Own fact.", "Shared fact.", "Guess."}
    assert list_texts("q=shared") == {"Shared fact."}


def test_a_memory_is_added_or_proposed_on_the_memory_tab(as_bob, pilot):
    for state in ("active", "proposed"):
        data = {"text": f"High water at six, {state}.", "status": state}
        answer = as_bob.post("/w/harbour/agents/pilot/memory/add/", data)
        assert answer.status_code == 302
        assert answer["Location"].endswith("/agents/pilot/memory/")
        memory = Memory.unscoped.get(status=state)
        assert (memory.agent, memory.author_label) == (pilot, "bob@example.com")


def test_a_memory_without_text_shows_an_error_on_the_field(as_bob, as_viewer, pilot):
    answer = as_bob.post("/w/harbour/agents/pilot/memory/add/", {"text": "", "status": "active"})
    assert answer.status_code == 422
    assert "text" in answer.context["form"].errors
    assert as_viewer.post("/w/harbour/agents/pilot/memory/add/", {"text": "x"}).status_code == 403
    assert not Memory.unscoped.exists()


# --- tools ---------------------------------------------------------------------------------------------


def test_the_tools_tab_shows_use_and_guidelines(as_bob, workspace):
    shell, write = make_tool(workspace, "shell"), make_tool(workspace, "write_file", guidelines="Ask first.")
    make_agent(
        workspace, "smith", layout="opal", tools=[shell, write], planning_tools=[make_tool(workspace, "ls")]
    )
    make_agent(workspace, "mate", tools=[shell])
    html = get_page(as_bob, "agents/smith/tools/")
    assert html.index(">shell<") < html.index("For planning only") < html.index(">ls<")
    assert "shared by 2 agents" in html
    assert "Use the `write_file` tool to create new files." in html
    assert "Ask first." in html
    assert "From the tool itself:" in html


def test_a_layout_without_tool_guidelines_shows_a_note(as_bob, workspace):
    make_agent(workspace, "quiet", layout="nova", tools=[make_tool(workspace, "shell")])
    assert "without guidance for each" in get_page(as_bob, "agents/quiet/tools/")
    make_agent(workspace, "bare")
    assert "No tools" in get_page(as_bob, "agents/bare/tools/")

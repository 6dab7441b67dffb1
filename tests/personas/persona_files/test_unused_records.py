"""A soul that no agent uses offers the agents; the form of the agent then has it selected."""

import pytest

from tests.factories import make_agent, make_soul

pytestmark = pytest.mark.django_db


def test_a_new_soul_can_be_given_to_an_agent(as_alice, workspace):
    agent, soul = make_agent(workspace, "pilot"), make_soul(workspace, "Calm", text="Be calm.")
    page = as_alice.get(f"/w/{workspace.slug}/souls/calm/").content.decode()
    link = f"/w/{workspace.slug}/agents/pilot/edit/?soul=calm"
    assert "Use in an agent" in page
    assert link in page
    form = as_alice.get(link).context["form"]
    assert form["soul"].value() in {soul, soul.pk}
    agent.refresh_from_db()
    assert agent.soul_id is None


def test_a_part_that_is_missing_can_be_chosen_or_created(as_alice, workspace):
    make_agent(workspace, "pilot")
    page = as_alice.get(f"/w/{workspace.slug}/agents/pilot/").content.decode()
    for family in ("identities", "souls", "user-profiles"):
        assert f'href="/w/{workspace.slug}/{family}/new/"' in page


def test_the_step_is_done_when_an_agent_uses_a_soul(as_alice, workspace):
    soul = make_soul(workspace, "Calm", text="Be calm.")
    assert not as_alice.get(f"/w/{workspace.slug}/").context["counts"].has_soul
    make_agent(workspace, "pilot", soul=soul)
    assert as_alice.get(f"/w/{workspace.slug}/").context["counts"].has_soul


def test_a_foreign_or_unknown_soul_selects_nothing(as_alice, workspace, elsewhere):
    make_agent(workspace, "pilot")
    make_soul(elsewhere, "Foreign", text="No.")
    for slug in ("foreign", "nothing"):
        form = as_alice.get(f"/w/{workspace.slug}/agents/pilot/edit/?soul={slug}").context["form"]
        assert not form["soul"].value()

"""A soul that no agent uses offers the agents; the form of the agent then has it selected."""

import pytest

from personas.records.services import archive_record
from tests.factories import BY, make_agent, make_soul

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
        assert f'href="/w/{workspace.slug}/{family}/new/?agent=pilot"' in page


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


@pytest.mark.parametrize(
    ("field", "family", "values"),
    [
        ("soul", "souls", {"name": "Calm", "text": "Be calm."}),
        ("identity", "identities", {"name": "Fox", "display_name": "Mira"}),
        ("user_profile", "user-profiles", {"name": "Guest", "display_name": "Ann"}),
    ],
)
def test_the_form_of_an_agent_links_to_a_new_part_and_then_has_it_selected(
    as_alice, workspace, field, family, values
):
    make_agent(workspace, "pilot")
    page = as_alice.get(f"/w/{workspace.slug}/agents/pilot/edit/").content.decode()
    link = f"/w/{workspace.slug}/{family}/new/?agent=pilot"
    assert f'<a class="dr-link" href="{link}">New {field.replace("_", " ")}</a>' in page
    form_url = as_alice.post(link, values)["Location"]
    assert form_url == f"/w/{workspace.slug}/agents/pilot/edit/?{field}={values['name'].lower()}"
    form = as_alice.get(form_url).context["form"]
    [selected] = form.fields[field].queryset.filter(pk=form[field].value())
    assert selected.name == values["name"]


def test_the_form_of_a_new_agent_links_to_a_new_soul(as_alice, workspace):
    page = as_alice.get(f"/w/{workspace.slug}/agents/new/").content.decode()
    assert f'href="/w/{workspace.slug}/souls/new/">New soul</a>' in page


def test_without_agents_a_new_soul_offers_a_new_agent(as_alice, workspace):
    soul = make_soul(workspace, "Calm", text="Be calm.")
    page = as_alice.get(f"/w/{workspace.slug}/souls/calm/").content.decode()
    link = f"/w/{workspace.slug}/agents/new/?soul=calm"
    assert link in page
    assert as_alice.get(link).context["form"]["soul"].value() in {soul, soul.pk}


def test_an_unknown_agent_leads_to_the_page_of_the_new_soul(as_alice, workspace, elsewhere):
    make_agent(elsewhere, "stranger")
    for slug in ("stranger", "nothing"):
        values = {"name": f"Calm {slug}", "text": "Be calm."}
        answer = as_alice.post(f"/w/{workspace.slug}/souls/new/?agent={slug}", values)
        assert answer["Location"] == f"/w/{workspace.slug}/souls/calm-{slug}/"


def test_a_soul_of_an_archived_agent_does_not_count(as_alice, workspace):
    agent = make_agent(workspace, "pilot", soul=make_soul(workspace, "Calm", text="Be calm."))
    archive_record(agent, by=BY)
    assert not as_alice.get(f"/w/{workspace.slug}/").context["counts"].has_soul

"""The page of a release keeps every approval; a release that is out of date is requested again at once."""

import pytest

from personas.actors import Actor
from personas.models import Soul
from personas.records.services import edit_record
from personas.roles import Role
from prompts.models import PRODUCTION, AgentPrompt
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.labels.services import protect_label
from prompts.publishing.releases.services import approve_release, request_again, request_release
from tests.factories import BY, join, make_agent, make_channel, make_soul, make_user, signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def outdated(workspace, alice, by_bob):
    """A release that Alice has approved, and a soul that was edited after that."""
    soul = make_soul(workspace, text="Be brave.")
    channels = [make_channel(workspace, "deck")]
    agent = make_agent(workspace, "careful", soul=soul, channels=channels, release_policy="reviewed")
    rebuild_agents(workspace, [agent.pk])
    prompts = list(AgentPrompt.objects.in_workspace(workspace).select_related("latest"))
    release = request_release(workspace, prompts, message="First words", by=by_bob)
    approve_release(release, by=Actor.person(alice))
    edit_record(soul, {"text": "Be calm."}, expected=1, by=BY)
    rebuild_agents(workspace, [agent.pk])
    return release


@pytest.fixture
def by_bob(bob):
    return Actor.person(bob)


def read(client, workspace, release) -> str:
    return str(client.get(f"/w/{workspace.slug}/releases/{release.number}/").content.decode())


def test_a_release_that_is_out_of_date_offers_to_request_it_again(as_bob, workspace, outdated):
    page = read(as_bob, workspace, outdated)
    assert "Request again with the latest versions" in page
    # It would be voided.
    assert "Release 1 prompt to production" not in page
    assert f'action="/w/{workspace.slug}/releases/{outdated.number}/request-again/"' in page


def test_the_approver_stays_on_the_page_after_the_release_ended(as_bob, workspace, outdated):
    as_bob.post(f"/w/{workspace.slug}/releases/{outdated.number}/publish/")
    page = read(as_bob, workspace, outdated)
    timeline = page.partition('id="timeline-title"')[2].partition("</section>")[0]
    assert "Alice" in timeline
    assert "pproved" in timeline
    assert "Request again with the latest versions" in page


def test_a_release_that_is_out_of_date_offers_no_approval_that_would_end_it(as_alice, workspace, outdated):
    assert "Withdraw" in read(as_alice, workspace, outdated)
    request_again(outdated, by=BY)
    page = read(as_alice, workspace, outdated)
    assert 'action="/w/harbour/releases/1/approve/"' in page
    assert "Release without approval" in page
    edit_soul(workspace, "Be slow.")
    page = read(as_alice, workspace, outdated)
    assert "out of date because" in page
    assert 'action="/w/harbour/releases/1/approve/"' not in page
    assert "Release without approval" not in page


def test_an_open_page_loses_the_button_that_would_be_refused(as_alice, workspace, outdated):
    request_again(outdated, by=BY)
    page = as_alice.get("/w/harbour/releases/1/")
    edit_soul(workspace, "Be slow.")
    live = f"/w/harbour/releases/1/live/?seen={page.context['mark']}&items={page.context['items_hash']}"
    part = as_alice.get(live).content.decode()
    assert '<div id="release-override" hx-swap-oob="true">' in part
    assert "Release without approval" not in part


def test_only_an_owner_is_offered_to_release_to_a_protected_label(
    workspace, alice, outdated, as_alice, as_bob
):
    request_again(outdated, by=BY)
    approve_release(outdated, by=Actor.person(alice))
    assert "Release 1 prompt to production" in read(as_bob, workspace, outdated)
    protect_label(workspace, PRODUCTION, True, by=Actor.person(alice))
    page = read(as_bob, workspace, outdated)
    assert "Release 1 prompt to production" not in page
    assert "“production” is a protected label. Only an owner can release to it." in page
    assert "Release 1 prompt to production" in read(as_alice, workspace, outdated)


def test_an_admin_is_not_offered_to_bypass_the_approval_of_a_protected_label(workspace, alice, outdated):
    request_again(outdated, by=BY)
    admin = make_user("Ada")
    join(workspace, admin, Role.ADMIN)
    assert "Release without approval" in read(signed_in(admin), workspace, outdated)
    protect_label(workspace, PRODUCTION, True, by=Actor.person(alice))
    assert "Release without approval" not in read(signed_in(admin), workspace, outdated)


def edit_soul(workspace, text: str) -> None:
    soul = Soul.objects.in_workspace(workspace).get()
    edit_record(soul, {"text": text}, expected=soul.revision, by=BY)
    rebuild_agents(workspace, soul.agent_ids())

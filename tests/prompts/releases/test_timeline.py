"""The page of a release keeps every approval; a release that is out of date is requested again at once."""

import pytest

from personas.actors import Actor
from personas.records.services import edit_record
from prompts.builds.services import rebuild_agents
from prompts.models import AgentPrompt
from prompts.releases.services import approve_release, request_release
from tests.factories import BY, make_agent, make_channel, make_soul

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
    as_bob.post(f"/w/{workspace.slug}/releases/{outdated.number}/release/")
    page = read(as_bob, workspace, outdated)
    timeline = page.partition('id="timeline-title"')[2].partition("</section>")[0]
    assert "Alice" in timeline
    assert "pproved" in timeline
    assert "Request again with the latest versions" in page

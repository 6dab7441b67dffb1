"""Pages say what of a record reaches bots: layouts that do not use it, and the revision in production."""

import pytest

from personas.records.services import edit_record
from prompts.models import AgentPrompt
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.labels.services import roll_back
from prompts.publishing.provenance.usage import UnusedLayout, is_used_by_layout, list_unused_layouts
from tests.factories import BY, make_agent, make_channel, make_soul

pytestmark = pytest.mark.django_db


@pytest.fixture
def soul(workspace):
    return make_soul(workspace, text="Be brave.")


def test_a_layout_without_a_place_for_souls_is_named(as_bob, workspace, soul):
    agent = make_agent(
        workspace, "night", soul=soul, layout="nova", channels=[make_channel(workspace, "deck")]
    )
    rebuild_agents(workspace, [agent.pk])
    assert not is_used_by_layout("soul", "nova")
    assert list_unused_layouts(workspace, soul) == [UnusedLayout("nova", 1)]
    page = as_bob.get(f"/w/{workspace.slug}/souls/{soul.slug}/").content.decode()
    assert "The nova layout (1 prompt) has no section for this content" in page
    assert "Not used by the nova layout" in as_bob.get(f"/w/{workspace.slug}/agents/night/").content.decode()


def test_production_that_uses_an_older_revision_says_so(as_bob, workspace, soul):
    agent = make_agent(workspace, "pilot", soul=soul, channels=[make_channel(workspace, "deck")])
    rebuild_agents(workspace, [agent.pk])
    edit_record(soul, {"text": "Be calm."}, expected=1, by=BY)
    rebuild_agents(workspace, [agent.pk])
    url = f"/w/{workspace.slug}/souls/{soul.slug}/"
    assert "Production uses revision" not in as_bob.get(url).content.decode()
    roll_back(list(AgentPrompt.objects.in_workspace(workspace)), by=BY, note="Too calm.")
    assert "Production uses revision 1; the latest is 2" in as_bob.get(url).content.decode()
    assert list_unused_layouts(workspace, soul) == []

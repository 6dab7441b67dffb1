"""The page before an erasure shows the whole text, and the prompts that contain it."""

import pytest

from tests.factories import make_agent, make_channel, make_memory

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_whole_text_and_the_prompts_are_shown(as_alice, workspace):
    agent = make_agent(workspace, "pilot", channels=[make_channel(workspace, "deck")])
    text = "Ann lives at 5 Low Road. " * 12 + "Her door is green."
    memory = make_memory(workspace, text, agent=agent)
    page = as_alice.get(f"/w/{workspace.slug}/erasures/memories/{memory.pk}/").content.decode()
    assert "Her door is green." in page
    assert "Currently or previously used in 1 prompt:" in page
    assert "Pilot" in page.partition("Currently or previously used in 1 prompt:")[2][:200]

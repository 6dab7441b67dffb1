"""The chart of tokens by section over the last versions."""

from typing import Any

import pytest

from personas.records.services import edit_record
from prompts.models import AgentPrompt
from prompts.publishing.sizes.size_history import MAX_SECTIONS, MAX_VERSIONS, load_size_history
from tests.factories import BY, make_agent, make_channel, make_memory, make_soul

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def prompt(workspace) -> Any:
    soul = make_soul(workspace, text="Be brave.")
    agent = make_agent(workspace, "pilot", soul=soul, channels=[make_channel(workspace, "deck")])
    return AgentPrompt.unscoped.select_related("latest").get(agent=agent)


def test_one_version_has_no_chart(as_alice, workspace, prompt):
    assert load_size_history(prompt) is None
    assert "dr-chart" not in as_alice.get(f"/w/{workspace.slug}/agents/pilot/versions/").content.decode()


def test_each_version_is_a_bar_whose_parts_sum_up_to_its_tokens(as_alice, workspace, prompt):
    edit_record(prompt.agent.soul, {"text": "Be calm. " * 40}, expected=1, by=BY)
    make_memory(workspace, "High water is at six.", agent=prompt.agent)
    prompt.refresh_from_db()
    history = load_size_history(prompt)
    assert history is not None
    assert [version.number for version in history.versions] == [1, 2, 3]
    assert history.versions[-1].total == prompt.latest.tokens
    assert history.sections[0] == "soul"
    assert len(history.sections) <= MAX_SECTIONS + 1
    html = as_alice.get(f"/w/{workspace.slug}/agents/pilot/versions/").content.decode()
    assert f"{prompt.latest.tokens:,} in version 3" in html
    assert html.count('<rect class="dr-series-1"') == len(history.versions) + 1
    assert "Tokens by version and section" in html


def test_only_the_last_versions_are_drawn(prompt, monkeypatch):
    monkeypatch.setattr("prompts.publishing.sizes.size_history.MAX_VERSIONS", 3)
    assert MAX_VERSIONS > 3
    for number in range(4):
        edit_record(prompt.agent.soul, {"text": f"Be {number}."}, expected=number + 1, by=BY)
    history = load_size_history(prompt)
    assert history is not None
    assert [version.number for version in history.versions] == [3, 4, 5]

"""Texts of records are shown as rendered Markdown, or as their source."""

import pytest

from tests.factories import make_agent, make_channel, make_responsibility, make_skill, make_soul

pytestmark = pytest.mark.django_db

TEXT = "# Calm\n\nStay **calm**.\n\n- breathe\n"
RENDERED, SOURCE = "Stay <strong>calm</strong>.", "Stay **calm**."


@pytest.fixture
def pages(workspace) -> list[str]:
    soul = make_soul(workspace, text=TEXT)
    agent = make_agent(workspace, "pilot", soul=soul, instructions=TEXT)
    duty = make_responsibility(agent, "Watch", text=TEXT)
    skill = make_skill(workspace, "knots", body=TEXT)
    channel = make_channel(workspace, "deck", formatting=TEXT)
    return [
        f"souls/{soul.slug}/",
        f"agents/{agent.slug}/",
        f"responsibilities/{duty.pk}/",
        f"skills/{skill.name}/",
        f"channels/{channel.slug}/",
    ]


def test_texts_are_rendered_and_the_source_is_one_click_away(as_alice, workspace, pages):
    for page in pages:
        html = as_alice.get(f"/w/{workspace.slug}/{page}").content.decode()
        assert RENDERED in html, page
        assert SOURCE not in html, page
        assert 'href="?text=source"' in html, page
        source = as_alice.get(f"/w/{workspace.slug}/{page}?text=source").content.decode()
        assert SOURCE in source, page
        assert RENDERED not in source, page


def test_the_source_shows_hidden_characters(as_alice, workspace):
    soul = make_soul(workspace, text="Be\u200b calm.")
    page = as_alice.get(f"/w/{workspace.slug}/souls/{soul.slug}/?text=source").content.decode()
    assert "U+200B" in page


def test_lists_show_the_text_without_its_title(as_alice, workspace, pages):
    html = as_alice.get(f"/w/{workspace.slug}/souls/").content.decode()
    assert "Stay calm. breathe" in html
    assert "# Calm" not in html


def test_a_very_long_text_is_not_rendered(as_alice, workspace):
    soul = make_soul(workspace, text="**x** " * 4_000)
    page = as_alice.get(f"/w/{workspace.slug}/souls/{soul.slug}/").content.decode()
    assert "<strong>x" not in page
    assert "**x** **x**" in page

"""Charts of fetches: counted by agent and day, drawn as plain SVG."""

from datetime import timedelta

import pytest
from django.utils import timezone

from personas.api_keys.services import create_key
from prompts.evidence.ledger.selectors import CHART_DAYS, count_daily_fetches
from prompts.templatetags.prompt_panels import bar_chart, sparkline
from tests.factories import BY, make_agent, make_channel
from tests.prompts.studio.fleet.fleet_stage import add_ledger_entry, get_prompt, rebuild

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("stopped_clock")]


@pytest.fixture
def pilot(workspace):
    """An agent with two fetches today, one yesterday and one before the chart begins."""
    agent = make_agent(workspace, "pilot", channels=[make_channel(workspace, "deck")])
    rebuild(agent)
    key, _secret = create_key(workspace, "Reception", {}, by=BY)
    now = timezone.now()
    for at in (now, now, now - timedelta(days=1), now - timedelta(days=CHART_DAYS + 1)):
        add_ledger_entry(get_prompt(agent), key, at=at)
    return agent


def test_fetches_are_counted_by_day(workspace, pilot):
    fetches = count_daily_fetches(workspace, [pilot.pk])[pilot.pk]
    assert fetches.counts[-2:] == [1, 2]
    assert fetches.total == 3
    assert len(fetches.days) == CHART_DAYS


def test_charts_are_images_with_a_text(workspace, pilot):
    fetches = count_daily_fetches(workspace, [pilot.pk])[pilot.pk]
    for drawing in (sparkline(fetches), bar_chart(fetches)):
        assert 'role="img" aria-label="3 fetches in the last 14 days"' in drawing
        assert "style=" not in drawing


def test_the_fleet_loads_sparklines_of_its_own_agents_only(as_bob, workspace, elsewhere, pilot):
    stranger = make_agent(elsewhere, "stranger")
    assert f'id="traffic-{pilot.pk}"' in as_bob.get(f"/w/{workspace.slug}/").content.decode()
    path = f"/w/{workspace.slug}/fleet/traffic/?agents={pilot.pk},{stranger.pk},x"
    html = as_bob.get(path).content.decode()
    assert f'id="traffic-{pilot.pk}"' in html
    assert "<polyline" in html
    assert f"traffic-{stranger.pk}" not in html


def test_the_agent_page_has_a_chart_and_its_numbers(as_bob, workspace, pilot):
    html = as_bob.get(f"/w/{workspace.slug}/agents/pilot/").content.decode()
    assert 'class="dr-fetch-bars"' in html
    assert "Fetches by day" in html

"""Progress of a wide rebuild: the page updates itself, stops, and names failed prompts."""

import pytest
from playwright.sync_api import expect

from core.task_queue import breaker
from personas.models import Agent
from prompts.models import BuildCause
from prompts.publishing.builds.services import rebuild_agents
from tests.browser.page_checks import axe_violations, find_overflows
from tests.factories import make_agent, make_channel, make_soul

pytestmark = pytest.mark.slow


@pytest.fixture
def crew(workspace) -> list[Agent]:
    soul, deck = make_soul(workspace, text="Be brave."), make_channel(workspace, "deck")
    return [make_agent(workspace, f"mate-{number}", soul=soul, channels=[deck]) for number in range(1, 4)]


@pytest.fixture
def no_worker(settings, monkeypatch) -> None:
    """Rebuild in the background from two prompts on, with an open circuit breaker: only the test builds."""
    settings.DRAMATIS_BUILD_AT_ONCE = 1
    monkeypatch.setattr(breaker, "open_until", float("inf"))


def reword(visit, text: str = "Be wise.") -> None:
    visit.go("souls/calm/edit/")
    visit.fill(Text=text)
    visit.press("Save")


@pytest.mark.hard
def test_the_page_updates_its_counts_and_stops_polling(bobs, crew, no_worker, workspace):
    reword(bobs)
    bobs.sees_message("3 prompts are being rebuilt.")
    bobs.sees("0 of 3 prompts rebuilt.")
    rebuild_agents(workspace, [crew[0].pk])
    bobs.sees("1 of 3 prompts rebuilt.")
    problems = axe_violations(bobs.page) + find_overflows(bobs.page)
    rebuild_agents(workspace, [mate.pk for mate in crew[1:]])
    bobs.sees("All 3 prompts have been rebuilt.")
    expect(bobs.page.locator("#rebuilding[hx-get]")).to_have_count(0)
    requests: list[str] = []
    bobs.page.on("request", lambda request: requests.append(request.url))
    bobs.page.wait_for_timeout(1_500)
    # The bell asks from time to time on every page.
    assert [url for url in requests if "/notifications/bell/" not in url] == []
    assert not problems, "\n\n".join(problems)


@pytest.mark.hard
def test_failed_builds_are_named_on_the_page_and_in_the_fleet(bobs, crew, no_worker, workspace):
    Agent.unscoped.filter(pk=crew[0].pk).update(layout="harbour")
    reword(bobs)
    rebuild_agents(workspace, [mate.pk for mate in crew])
    bobs.sees("2 of 3 prompts rebuilt.")
    bobs.sees("The layout “harbour” no longer exists.")
    problems = axe_violations(bobs.page) + find_overflows(bobs.page)
    bobs.go()
    bobs.sees("The layout “harbour” no longer exists.")
    problems += axe_violations(bobs.page) + find_overflows(bobs.page)
    bobs.follow("Not built")
    bobs.sees("The last build failed")
    assert not problems, "\n\n".join(problems)


def test_real_workers_finish_a_wide_rebuild(alices, crew, settings, celery_worker):
    settings.DRAMATIS_BUILD_AT_ONCE, settings.DRAMATIS_BUILD_BATCH = 1, 1
    reword(alices)
    alices.sees_message("3 prompts are being rebuilt.")
    expect(alices.page.get_by_role("main")).to_contain_text(
        "All 3 prompts have been rebuilt.", timeout=60_000
    )
    assert not BuildCause.unscoped.exists()

"""A wide change on its way, as people see it: the page counts by itself, ends, and names what failed."""

import pytest
from playwright.sync_api import expect

from core.task_queue import breaker
from personas.models import Agent
from prompts.builds.services import rebuild_agents
from prompts.models import BuildCause
from tests.browser.looking import complaints, overflows
from tests.factories import make_agent, make_channel, make_soul


@pytest.fixture
def crew(workspace) -> list[Agent]:
    soul, deck = make_soul(workspace, text="Be brave."), make_channel(workspace, "deck")
    return [make_agent(workspace, f"mate-{number}", soul=soul, channels=[deck]) for number in range(1, 4)]


@pytest.fixture
def idle(settings, monkeypatch) -> None:
    """Wide begins at two prompts, and no job reaches a worker: the test builds when it wants to."""
    settings.DRAMATIS_BUILD_AT_ONCE = 1
    monkeypatch.setattr(breaker, "open_until", float("inf"))


def reword(visit, text: str = "Be wise.") -> None:
    visit.go("souls/calm/edit/")
    visit.fill(Text=text)
    visit.press("Save")


@pytest.mark.hard
def test_the_page_counts_and_stops_by_itself(bobs, crew, idle, workspace):
    reword(bobs)
    bobs.is_told("3 prompts are being rebuilt.")
    bobs.sees("0 of 3 prompts rebuilt.")
    rebuild_agents(workspace, [crew[0].pk])
    bobs.sees("1 of 3 prompts rebuilt.")
    said = complaints(bobs.page) + overflows(bobs.page)
    rebuild_agents(workspace, [mate.pk for mate in crew[1:]])
    bobs.sees("All 3 prompts are rebuilt.")
    expect(bobs.page.locator("#rebuilding[hx-get]")).to_have_count(0)
    asked: list[str] = []
    bobs.page.on("request", lambda request: asked.append(request.url))
    bobs.page.wait_for_timeout(1_500)
    assert asked == []
    assert not said, "\n\n".join(said)


@pytest.mark.hard
def test_what_failed_is_named_there_and_at_home(bobs, crew, idle, workspace):
    Agent.unscoped.filter(pk=crew[0].pk).update(layout="harbour")
    reword(bobs)
    rebuild_agents(workspace, [mate.pk for mate in crew])
    bobs.sees("2 of 3 prompts rebuilt.")
    bobs.sees("There is no layout “harbour” any more.")
    said = complaints(bobs.page) + overflows(bobs.page)
    bobs.go()
    bobs.sees("There is no layout “harbour” any more.")
    said += complaints(bobs.page) + overflows(bobs.page)
    bobs.follow("Not built")
    bobs.sees("The last build failed")
    assert not said, "\n\n".join(said)


def test_real_workers_bring_a_wide_change_to_its_end(alices, crew, settings, celery_worker):
    settings.DRAMATIS_BUILD_AT_ONCE, settings.DRAMATIS_BUILD_BATCH = 1, 1
    reword(alices)
    alices.is_told("3 prompts are being rebuilt.")
    expect(alices.page.get_by_role("main")).to_contain_text("All 3 prompts are rebuilt.", timeout=20_000)
    assert not BuildCause.unscoped.exists()

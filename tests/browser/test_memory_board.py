"""The memory board in a browser: one card, bulk actions, phones, slow and failing servers."""

import re

import pytest
from playwright.sync_api import Route, expect

from personas.actors import Actor
from personas.models import Memory
from personas.roles import Role
from prompts.publishing.builds.services import rebuild_agents
from tests.browser.held_requests import HeldRequests
from tests.browser.page_checks import axe_violations, find_overflows
from tests.browser.users import Visit
from tests.factories import join, make_agent, make_channel, make_memory, make_user

pytestmark = pytest.mark.slow

SCOUT = Actor.bot("scout")


@pytest.fixture
def facts(workspace):
    channels = [make_channel(workspace, slug) for slug in ("deck", "hall")]
    pilot, cook = (make_agent(workspace, slug, channels=channels) for slug in ("pilot", "cook"))
    make_memory(workspace, "Tea is at four.", agent=pilot)
    for text, agent in (
        ("Likes tea.", pilot),
        ("Likes jam.", pilot),
        ("Likes rain.", cook),
        ("Waves.", None),
    ):
        make_memory(workspace, text, agent=agent, by=SCOUT, source="A chat on Monday")
    rebuild_agents(workspace, [pilot.pk, cook.pk])
    return workspace


@pytest.fixture
def ritas(facts, logged_in_page):
    """Rita, a reviewer: may approve, but not edit."""
    rita = make_user("Rita")
    join(facts, rita, Role.REVIEWER)
    return Visit(logged_in_page(rita), facts.slug)


def test_memories_are_approved_one_by_one_and_in_bulk(ritas, facts):
    page = ritas.page
    ritas.go("memories/board/")
    assert not axe_violations(page)
    card = page.locator(".dr-memo", has_text="Likes rain.")
    card.get_by_role("button", name="Approve").click()
    page.get_by_role("dialog").get_by_role("button", name="Approve and deploy (2 prompts)").click()
    active = page.locator("#cards-active")
    expect(active.get_by_role("link", name="Likes rain.", exact=True)).to_be_visible()
    expect(page.locator("#count-proposed")).to_have_text("3")
    expect(page.locator("#count-active")).to_have_text("2")
    ritas.sees_message("Approved: “Likes rain.”.")
    # The focus stays where the card was.
    expect(page.locator("#cards-proposed :focus")).to_have_count(1)

    bar = page.locator("form.dr-bulk")
    expect(bar).to_be_hidden()
    page.get_by_role("checkbox", name="Likes tea.").check()
    page.get_by_role("checkbox", name="Likes jam.").check()
    # Both belong to the pilot, whose two prompts are counted once.
    expect(bar).to_contain_text("2 selected")
    expect(bar).to_contain_text("may change 2 prompts")
    page.get_by_role("checkbox", name="Waves.").check()
    expect(bar).to_contain_text("may change 4 prompts")
    assert not axe_violations(page)
    page.get_by_role("checkbox", name="Waves.").uncheck()
    bar.get_by_role("button", name="Approve").click()
    ritas.leave_by(page.get_by_role("button", name="Approve and deploy (2 prompts)"))
    ritas.sees_message("Approved: 2 memories.")
    expect(page.locator("#count-proposed")).to_have_text("1")
    states = dict(Memory.objects.in_workspace(facts).values_list("text", "status"))
    assert states["Likes tea."] == states["Likes jam."] == "active"


def test_no_card_is_lost_on_a_phone_or_with_a_slow_or_failing_server(ritas, page_errors):
    page = ritas.page
    ritas.go("memories/board/")
    assert not find_overflows(page)
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator("#cards-active")).to_be_hidden()
    page.get_by_role("navigation", name="Column").get_by_role("link", name=re.compile("Active")).click()
    page.wait_for_url(re.compile("column=active"))
    expect(page.locator("#cards-active")).to_be_visible()
    expect(page.locator("#cards-proposed")).to_be_hidden()
    page.set_viewport_size({"width": 1280, "height": 720})

    held = HeldRequests(page, "**/memories/decide/")
    card = page.locator(".dr-memo", has_text="Likes rain.")
    card.get_by_role("button", name="Approve").click()
    expect(card.locator(".htmx-request")).to_have_count(1)
    held.next().continue_()
    held.stop()
    page.get_by_role("dialog").get_by_role("button", name="Approve and deploy (2 prompts)").click()
    expect(page.locator("#cards-active").get_by_role("link", name="Likes rain.", exact=True)).to_be_visible()

    def fail(route: Route) -> None:
        route.fulfill(status=500, body="")

    # Chromium and htmx log the error status that this test causes.
    page_errors.expect("decide|500")
    page.route("**/memories/decide/", fail)
    page.locator(".dr-memo", has_text="Waves.").get_by_role("button", name="Reject").click()
    expect(page.get_by_role("status").filter(has_text="Something went wrong")).to_be_visible()
    expect(page.locator("#cards-proposed").get_by_role("link", name="Waves.", exact=True)).to_be_visible()


def test_viewers_see_the_board_without_actions(facts, logged_in_page, elsewhere, mallory):
    vera = make_user("Vera")
    join(facts, vera, Role.VIEWER)
    visit = Visit(logged_in_page(vera), facts.slug)
    visit.go("memories/board/")
    visit.sees("Likes tea.")
    expect(visit.page.get_by_role("main").get_by_role("checkbox")).to_have_count(0)
    expect(visit.page.get_by_role("button", name="Approve")).to_have_count(0)
    empty = Visit(logged_in_page(mallory), elsewhere.slug)
    empty.go("memories/board/")
    empty.sees("No memories yet")
    assert not axe_violations(empty.page)

"""The fleet as people use it: chosen by mouse and keyboard, moved, searched, and begun from nothing."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from personas.api_keys.services import create_key
from personas.models import Agent
from prompts.models import PRODUCTION, PromptLabel, Release
from tests.browser.looking import complaints, overflows
from tests.browser.people import Visit
from tests.browser.test_versions import reword
from tests.factories import BY, join, make_agent, make_channel, make_soul
from tests.prompts.fleet.fleet_stage import add_ledger_entry, get_prompt


@pytest.fixture
def crew(workspace: Any) -> Any:
    """Two automatic agents and a reviewed one that share a soul, on two channels."""
    soul = make_soul(workspace, text="Be brave.")
    channels = [make_channel(workspace, "deck"), make_channel(workspace, "bridge")]
    make_agent(workspace, "pilot", soul=soul, channels=channels)
    make_agent(workspace, "cook", soul=soul, channels=channels[:1])
    make_agent(workspace, "careful", soul=soul, channels=channels[:1], release_policy="reviewed")
    return soul


def in_production() -> list[int]:
    rows = PromptLabel.unscoped.filter(name=PRODUCTION).order_by(
        "prompt__agent__name", "prompt__channel__name"
    )
    return list(rows.values_list("version__number", flat=True))


def test_a_column_is_chosen_rolled_back_and_released_again(alices, crew):
    reword(crew, "Be brave and wise.")
    assert in_production() == [2, 2, 2]
    alices.go()
    page = alices.page
    bar = page.get_by_role("group", name="With the chosen prompts")
    expect(bar).to_be_hidden()
    page.get_by_label("Choose all on Deck").check()
    expect(bar).to_contain_text("3 prompts chosen")
    page.get_by_label("Choose Careful, Deck").press("Space")
    expect(bar).to_contain_text("2 prompts chosen")
    expect(page.get_by_label("Choose all on Deck")).to_have_js_property("indeterminate", True)
    said = complaints(page) + overflows(page)
    page.set_viewport_size({"width": 1280, "height": 800})
    assert alices.press("Roll back…") == 200
    said += complaints(page) + overflows(page)
    assert alices.press("Roll back 2 prompts in production") == 422
    alices.is_refused("Why", "required")
    alices.fill(Why="Too wise.")
    alices.press("Roll back 2 prompts in production")
    alices.is_told("Rolled 2 prompts back in production.")
    assert in_production() == [1, 2, 1]
    alices.go("?state=held")
    page.get_by_label("Choose all on this page").check()
    expect(bar).to_contain_text("2 prompts chosen")
    bar.get_by_role("button", name="Release").click()
    alices.fill(Message="Wise after all")
    alices.press("Request a release of the chosen")
    alices.is_told("Release 1 is requested.")
    assert Release.unscoped.get().items.count() == 2
    assert not said, "\n\n".join(said)


def test_the_fleet_is_searched_and_suits_everyone(alices, crew, workspace):
    key, _ = create_key(workspace, "Reception", {}, by=BY)
    for agent in Agent.unscoped.filter(slug__in=["pilot", "cook"]):
        add_ledger_entry(get_prompt(agent), key)
    reword(crew, "Be wise.")
    alices.go()
    page = alices.page
    expect(page.get_by_role("row", name=re.compile("Pilot"))).to_contain_text("1 bot behind")
    page.keyboard.press("/")
    page.keyboard.type("car")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"\?q=car"))
    expect(page.get_by_role("rowheader", name=re.compile("Pilot"))).to_have_count(0)
    said = complaints(page) + overflows(page)
    alices.go("?q=nobody")
    alices.sees("Nothing matches")
    alices.follow("Clear")
    said += complaints(page) + overflows(page)
    assert not said, "\n\n".join(said)


def test_without_script_and_without_rights(logged_in_page, alice, mallory, crew, workspace):
    alices = Visit(logged_in_page(alice, java_script_enabled=False), workspace.slug)
    alices.go()
    alices.page.get_by_label("Choose Cook, Deck").check()
    alices.press("Rebuild")
    alices.is_told("Built 1 prompt anew: every word is as it was.")
    join(workspace, mallory, "viewer")
    views = Visit(logged_in_page(mallory), workspace.slug)
    views.go()
    views.sees("Pilot")
    expect(views.page.get_by_role("main").get_by_role("checkbox")).to_have_count(0)
    assert not complaints(views.page)


@pytest.mark.hard
def test_a_new_workspace_is_filled_with_the_demo(alices, workspace):
    alices.go()
    said = complaints(alices.page) + overflows(alices.page)
    alices.page.set_viewport_size({"width": 1280, "height": 800})
    # A slow network: the button says that it is under way, and cannot be pressed twice.
    alices.page.route("**/fleet/demo/", lambda route: (alices.page.wait_for_timeout(300), route.continue_()))
    alices.page.get_by_role("button", name="Load the demo").click(no_wait_after=True)
    expect(alices.page.get_by_role("status").filter(has_text="The demo is here")).to_be_visible(
        timeout=30_000
    )
    alices.sees("Hut Support")
    said += complaints(alices.page) + overflows(alices.page)
    alices.press("Put away the first steps")
    expect(alices.page.get_by_role("heading", name="First steps")).to_have_count(0)
    assert not said, "\n\n".join(said)

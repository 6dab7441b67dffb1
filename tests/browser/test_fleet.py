"""The fleet in a browser: selection, rollback, release, search, and an empty workspace."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from personas.api_keys.services import create_key
from personas.models import Agent
from prompts.models import PRODUCTION, PromptLabel, Release
from tests.browser.page_checks import axe_violations, find_overflows
from tests.browser.test_versions import reword
from tests.browser.users import Visit
from tests.factories import BY, join, make_agent, make_channel, make_soul
from tests.prompts.studio.fleet.fleet_stage import add_ledger_entry, get_prompt

pytestmark = pytest.mark.slow


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


def test_a_column_is_selected_rolled_back_and_released_again(alices, crew):
    reword(crew, "Be brave and wise.")
    assert in_production() == [2, 2, 2]
    alices.go()
    page = alices.page
    bar = page.get_by_role("group", name="Actions for selected prompts")
    expect(bar).to_be_hidden()
    page.get_by_label("Select all on Deck").check()
    expect(bar).to_contain_text("3 prompts selected")
    page.get_by_label("Select Careful, Deck").press("Space")
    expect(bar).to_contain_text("2 prompts selected")
    expect(page.get_by_label("Select all on Deck")).to_have_js_property("indeterminate", True)
    problems = axe_violations(page) + find_overflows(page)
    page.set_viewport_size({"width": 1280, "height": 800})
    assert alices.press("Roll back…") == 200
    problems += axe_violations(page) + find_overflows(page)
    assert alices.press("Roll back 2 prompts") == 422
    alices.sees_field_error("Reason", "required")
    alices.fill(Reason="Too wise.")
    alices.press("Roll back 2 prompts")
    alices.sees_message("Rolled back 2 prompts.")
    assert in_production() == [1, 2, 1]
    alices.go("?state=held")
    page.get_by_label("Select all on this page").check()
    expect(bar).to_contain_text("2 prompts selected")
    alices.leave_by(bar.get_by_role("button", name="Release"))
    alices.fill(Message="Wise after all")
    alices.press("Request release of selected prompts")
    alices.sees_message("Release 1 requested.")
    assert Release.unscoped.get().items.count() == 2
    assert not problems, "\n\n".join(problems)


def test_the_fleet_is_searchable_and_accessible(alices, crew, workspace):
    key, _ = create_key(workspace, "Reception", {}, by=BY)
    for agent in Agent.unscoped.filter(slug__in=["pilot", "cook"]):
        add_ledger_entry(get_prompt(agent), key)
    reword(crew, "Be wise.")
    alices.go()
    page = alices.page
    expect(page.get_by_role("row", name=re.compile("Pilot"))).to_contain_text("1 outdated bot")
    page.keyboard.press("/")
    page.keyboard.type("car")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"\?q=car"))
    expect(page.get_by_role("rowheader", name=re.compile("Pilot"))).to_have_count(0)
    problems = axe_violations(page) + find_overflows(page)
    alices.go("?q=nobody")
    alices.sees("No results")
    alices.follow("Clear")
    problems += axe_violations(page) + find_overflows(page)
    assert not problems, "\n\n".join(problems)


def test_the_fleet_works_without_script_and_read_only_for_viewers(
    logged_in_page, alice, mallory, crew, workspace
):
    alices = Visit(logged_in_page(alice, java_script_enabled=False), workspace.slug)
    alices.go()
    alices.page.get_by_label("Select Cook, Deck").check()
    alices.press("Rebuild")
    alices.sees_message("Rebuilt 1 prompt: the text is unchanged.")
    join(workspace, mallory, "viewer")
    viewers = Visit(logged_in_page(mallory), workspace.slug)
    viewers.go()
    viewers.sees("Pilot")
    expect(viewers.page.get_by_role("main").get_by_role("checkbox")).to_have_count(0)
    assert not axe_violations(viewers.page)


@pytest.mark.hard
def test_a_new_workspace_is_filled_with_the_demo(alices, workspace):
    alices.go()
    problems = axe_violations(alices.page) + find_overflows(alices.page)
    alices.page.set_viewport_size({"width": 1280, "height": 800})
    # Slow network: the button shows progress and cannot be pressed twice.
    alices.page.route("**/fleet/demo/", lambda route: (alices.page.wait_for_timeout(300), route.continue_()))
    alices.page.get_by_role("button", name="Load the demo").click(no_wait_after=True)
    expect(alices.page.get_by_role("status").filter(has_text="Demo loaded")).to_be_visible(timeout=60_000)
    alices.sees("Hut Support")
    problems += axe_violations(alices.page) + find_overflows(alices.page)
    alices.press("Dismiss the first steps")
    expect(alices.page.get_by_role("heading", name="First steps")).to_have_count(0)
    assert not problems, "\n\n".join(problems)

"""The frame around the pages: palette, theme, menus, narrow screens, no script."""

import re

from playwright.sync_api import expect

from personas.models import Agent
from tests.browser.looking import overflows
from tests.browser.people import Visit
from tests.factories import join, make_agent, make_workspace

PHONE = {"width": 390, "height": 844}


def test_the_palette_opens_finds_and_goes(bobs):
    bobs.go()
    bobs.page.keyboard.press("Control+k")
    palette = bobs.page.get_by_role("dialog", name="Search or jump to")
    expect(palette).to_be_visible()
    bobs.page.keyboard.type("soul")
    options = palette.get_by_role("option")
    expect(options).to_have_text([re.compile("^Souls"), re.compile("^New soul")])
    expect(options.first).to_have_attribute("aria-selected", "true")
    bobs.page.keyboard.press("ArrowDown")
    expect(options.last).to_have_attribute("aria-selected", "true")
    bobs.page.keyboard.press("Enter")
    expect(bobs.page).to_have_url(re.compile("/souls/new/$"))


def test_the_palette_closes_on_escape_and_offers_viewers_nothing_to_create(
    logged_in_page, mallory, workspace
):
    join(workspace, mallory, "viewer")
    views = Visit(logged_in_page(mallory), workspace.slug)
    views.go()
    views.page.get_by_role("button", name="Search or jump to").click()
    views.page.keyboard.type("new")
    palette = views.page.get_by_role("dialog", name="Search or jump to")
    expect(palette).to_contain_text("Nothing here by that name")
    views.page.keyboard.press("Escape")
    expect(palette).to_be_hidden()


def test_a_chosen_theme_stays(bobs):
    bobs.go()
    html = bobs.page.locator("html")
    bobs.page.get_by_text("Theme", exact=True).locator("..").click()
    bobs.page.get_by_role("button", name="Dark").click()
    expect(html).to_have_attribute("data-theme", "dark")
    bobs.go("agents/")
    expect(html).to_have_attribute("data-theme", "dark")
    bobs.page.get_by_text("Theme", exact=True).locator("..").click()
    expect(bobs.page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    bobs.page.get_by_role("button", name="System").click()
    expect(html).not_to_have_attribute("data-theme", "dark")


def test_the_switcher_leads_to_another_workspace_and_to_a_new_one(alices, alice):
    make_workspace("Lighthouse", owner=alice)
    alices.go()
    alices.page.get_by_text("Workspace: Harbour").click()
    alices.page.get_by_role("link", name="Lighthouse").click()
    expect(alices.page).to_have_url(re.compile("/w/lighthouse/$"))
    alices.page.get_by_text("Workspace: Lighthouse").click()
    alices.page.get_by_role("link", name="New workspace").click()
    expect(alices.page.get_by_role("heading", name="New workspace")).to_be_visible()


def test_a_list_is_searched_and_cleared(bobs, workspace):
    for name in ("keeper", "pilot"):
        make_agent(workspace, name)
    bobs.go("agents/")
    bobs.page.keyboard.press("/")
    bobs.page.keyboard.type("pil")
    bobs.page.keyboard.press("Enter")
    expect(bobs.page.get_by_role("rowheader")).to_have_count(1)
    bobs.follow("Clear")
    expect(bobs.page.get_by_role("rowheader")).to_have_count(2)


def test_on_a_phone_the_sidebar_opens_and_leads_on(logged_in_page, bob, workspace):
    bobs = Visit(logged_in_page(bob, viewport=PHONE), workspace.slug)
    bobs.go()
    sidebar = bobs.page.get_by_role("navigation", name="Workspace")
    expect(sidebar).to_be_hidden()
    bobs.page.get_by_role("button", name="Open navigation").click()
    expect(sidebar).to_be_visible()
    sidebar.get_by_role("link", name="Memories").click()
    expect(bobs.page.get_by_role("heading", name="Memories", level=1)).to_be_visible()


def test_without_script_an_agent_is_made_changed_and_archived(logged_in_page, bob, workspace):
    bobs = Visit(logged_in_page(bob, java_script_enabled=False, viewport=PHONE), workspace.slug)
    bobs.go("agents/")
    expect(bobs.page.get_by_role("button", name="Search or jump to")).to_be_hidden()
    bobs.follow("New agent")
    bobs.page.locator("[name=name]").fill("Pilot")
    bobs.page.locator("[name=slug]").fill("pilot")
    bobs.press("Create agent")
    bobs.is_told("created")
    bobs.follow("Edit")
    bobs.page.locator("[name=description]").fill("Brings ships in.")
    bobs.press("Save")
    bobs.sees("Brings ships in.")
    bobs.press("Archive")
    bobs.is_told("Archived")
    bobs.page.get_by_role("button", name="Open navigation").click()
    bobs.page.get_by_role("link", name="Overview").click()
    bobs.sees("No agent yet")
    assert Agent.objects.in_workspace(workspace).get(slug="pilot").revision == 2


def test_one_very_long_word_widens_no_page(bobs, workspace):
    word = "W" * 80
    make_agent(workspace, "long", name=word, description=word * 3, instructions=word * 9)
    for path in ("", "agents/", "agents/long/", "agents/long/edit/", "agents/long/history/1/", "audit/"):
        bobs.go(path)
        assert not overflows(bobs.page)

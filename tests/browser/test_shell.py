"""The page shell: command palette, theme, menus, shortcuts, toasts, narrow screens, no script."""

import re

import pytest
from playwright.sync_api import expect

from personas.models import Agent, Soul
from prompts.models import AgentPrompt
from tests.browser.held_requests import HeldRequests
from tests.browser.page_checks import axe_violations, find_overflows
from tests.browser.users import Visit
from tests.factories import join, make_agent, make_channel, make_soul, make_workspace

pytestmark = pytest.mark.slow

PHONE = {"width": 390, "height": 844}


def test_the_palette_finds_pages_and_records_and_remembers_recent_visits(bobs, workspace):
    make_agent(workspace, "juniper", name="Juniper")
    bobs.go()
    palette = bobs.search_palette("soul")
    options = palette.get_by_role("option")
    expect(options).to_have_text([re.compile("^Souls"), re.compile("^New soul")])
    expect(options.first).to_have_attribute("aria-selected", "true")
    bobs.page.keyboard.press("ArrowDown")
    expect(options.last).to_have_attribute("aria-selected", "true")
    bobs.page.keyboard.press("Enter")
    bobs.page.wait_for_url(re.compile("/souls/new/$"))

    bobs.go("souls/")
    palette = bobs.open_palette()
    bobs.page.keyboard.type("junip")
    expect(palette.get_by_role("option").first).to_have_text(re.compile("^Juniper"))
    bobs.page.keyboard.press("Enter")
    bobs.page.wait_for_url(re.compile("/agents/juniper/$"))
    bobs.go("souls/")
    palette = bobs.open_palette()
    expect(palette.get_by_role("group").first).to_have_attribute("aria-labelledby", "dr-palette-group-0")
    expect(palette.get_by_role("option").first).to_have_text(re.compile("^Juniper"))
    bobs.page.keyboard.type("dark")
    bobs.page.keyboard.press("Enter")
    expect(bobs.page.locator("html")).to_have_attribute("data-theme", "dark")
    bobs.open_palette()
    bobs.page.keyboard.type("sign out")
    bobs.page.keyboard.press("Enter")
    bobs.page.wait_for_url(re.compile("/accounts/login/"))
    assert bobs.page.evaluate("() => localStorage.getItem('palette-recent')") is None


def test_the_palette_closes_on_escape_and_offers_viewers_nothing_to_create(
    logged_in_page, mallory, workspace
):
    join(workspace, mallory, "viewer")
    viewers = Visit(logged_in_page(mallory), workspace.slug)
    viewers.go()
    viewers.page.get_by_role("button", name="Search or jump to").click()
    viewers.page.keyboard.type("new soul")
    palette = viewers.page.get_by_role("dialog", name="Search or jump to")
    expect(palette).to_contain_text("No results")
    viewers.page.keyboard.press("Escape")
    expect(palette).to_be_hidden()


def test_the_theme_is_remembered_and_the_switcher_opens_other_workspaces(alices, alice):
    make_workspace("Lighthouse", owner=alice)
    alices.go()
    html = alices.page.locator("html")
    alices.page.get_by_text("Theme", exact=True).locator("..").click()
    alices.page.get_by_role("button", name="Dark").click()
    expect(html).to_have_attribute("data-theme", "dark")
    alices.go("agents/")
    expect(html).to_have_attribute("data-theme", "dark")
    alices.page.get_by_text("Theme", exact=True).locator("..").click()
    expect(alices.page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    alices.page.get_by_role("button", name="System").click()
    expect(html).not_to_have_attribute("data-theme", "dark")
    alices.page.get_by_text("Workspace: Harbour").click()
    alices.leave_by(alices.page.get_by_role("link", name="Lighthouse"))
    expect(alices.page).to_have_url(re.compile("/w/lighthouse/$"))
    alices.page.get_by_text("Workspace: Lighthouse").click()
    alices.leave_by(alices.page.get_by_role("link", name="New workspace"))
    expect(alices.page.get_by_role("heading", name="New workspace")).to_be_visible()


def test_on_a_phone_the_sidebar_opens_and_navigates(logged_in_page, bob, workspace):
    bobs = Visit(logged_in_page(bob, viewport=PHONE), workspace.slug)
    bobs.go()
    sidebar = bobs.page.get_by_role("navigation", name="Workspace")
    expect(sidebar).to_be_hidden()
    bobs.page.get_by_role("button", name="Open navigation").click()
    expect(sidebar).to_be_visible()
    # A rotated tablet: the open popover becomes the sidebar column.
    bobs.page.set_viewport_size({"width": 1200, "height": 800})
    expect(bobs.page.locator("#dr-sidebar:popover-open")).to_have_count(0)
    expect(sidebar).to_be_visible()
    expect(sidebar.get_by_role("link", name="Memories")).to_be_hidden()
    sidebar.locator("summary", has_text="Library").click()
    bobs.leave_by(sidebar.get_by_role("link", name="Memories"))
    expect(bobs.page.get_by_role("heading", name="Memories", level=1)).to_be_visible()
    # The group of the open page is unfolded.
    expect(sidebar.get_by_role("link", name="Memories")).to_be_visible()


def test_without_script_an_agent_is_created_edited_and_archived(logged_in_page, bob, workspace):
    bobs = Visit(logged_in_page(bob, java_script_enabled=False, viewport=PHONE), workspace.slug)
    bobs.go("agents/")
    expect(bobs.page.get_by_role("button", name="Search or jump to")).to_be_hidden()
    bobs.follow("New agent")
    bobs.page.locator("[name=name]").fill("Pilot")
    bobs.page.locator("[name=slug]").fill("pilot")
    bobs.press("Create agent")
    bobs.sees_message("created")
    bobs.follow("Edit")
    bobs.page.locator("[name=description]").fill("Brings ships in.")
    bobs.press("Save")
    bobs.sees("Brings ships in.")
    bobs.page.locator("main summary", has=bobs.page.get_by_label("More actions")).click()
    bobs.press("Archive")
    bobs.sees_message("Archived")
    bobs.press("Undo")
    bobs.sees_message("Restored")
    bobs.page.get_by_role("button", name="Open navigation").click()
    bobs.leave_by(bobs.page.get_by_role("link", name="Fleet"))
    bobs.sees("Pilot")
    assert Agent.objects.in_workspace(workspace).get(slug="pilot").revision == 2


@pytest.mark.hard
def test_a_very_long_word_does_not_overflow_the_page(bobs, workspace):
    word = "W" * 80
    make_agent(workspace, "long", name=word, description=word * 3, instructions=word * 9)
    for path in ("", "agents/", "agents/long/", "agents/long/edit/", "agents/long/history/1/", "audit/"):
        bobs.go(path)
        assert not find_overflows(bobs.page)


@pytest.mark.hard
def test_the_palette_shows_search_progress_and_failure(bobs, workspace, page_errors):
    make_agent(workspace, "juniper", name="Juniper")
    bobs.go("souls/")
    page_errors.expect("/find/")
    held = HeldRequests(bobs.page, "**/find/**")
    palette = bobs.open_palette()
    bobs.page.keyboard.type("junip")
    expect(palette.get_by_text("Searching…")).to_be_visible()
    expect(palette.get_by_text("Page not found")).to_be_hidden()
    held.next().fulfill(status=500)
    expect(palette.get_by_role("alert")).to_contain_text("The search failed")
    assert not axe_violations(bobs.page)
    held.stop()
    palette.get_by_role("button", name="Try again").click()
    expect(palette.get_by_role("option").first).to_have_text(re.compile("^Juniper"))
    bobs.page.context.clear_cookies()
    bobs.page.keyboard.type("er")
    bobs.sees_message("You have been signed out")


def test_shortcuts_search_navigate_and_can_be_switched_off(bobs, workspace):
    for name in ("keeper", "pilot"):
        make_agent(workspace, name)
    bobs.go("agents/")
    bobs.page.keyboard.press("/")
    bobs.page.keyboard.type("pil")
    bobs.page.keyboard.press("Enter")
    expect(bobs.page.get_by_role("rowheader")).to_have_count(1)
    bobs.follow("Clear")
    expect(bobs.page.get_by_role("rowheader")).to_have_count(2)
    keys = bobs.page.keyboard
    for key, name in (("j", "Keeper"), ("j", "Pilot"), ("j", "Pilot"), ("k", "Keeper"), ("j", "Pilot")):
        keys.press(key)
        expect(bobs.page.get_by_role("link", name=name, exact=True).first).to_be_focused()
    box = bobs.page.locator("tr", has_text="Pilot").get_by_role("checkbox")
    if box.count():
        keys.press("x")
        expect(box).to_be_checked()
        keys.press("x")
    # Shortcuts work only after the page has loaded.
    keys.press("o")
    bobs.page.wait_for_url(re.compile("/agents/pilot/$"))
    keys.press("e")
    bobs.page.wait_for_url(re.compile("/agents/pilot/edit/$"))
    bobs.page.locator("main [name=name]").focus()
    keys.press("g")
    keys.press("m")
    expect(bobs.page).to_have_url(re.compile("/agents/pilot/edit/$"))
    bobs.page.evaluate("() => document.activeElement.blur()")
    keys.press("g")
    keys.press("m")
    bobs.page.wait_for_url(re.compile("/memories/"))

    # The help dialog lists the shortcuts of this page.
    bobs.go("agents/pilot/")
    bobs.page.keyboard.press("?")
    dialog = bobs.page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog.get_by_text("Edit this record")).to_be_visible()
    expect(dialog.get_by_text("Undo the last action")).to_be_hidden()
    expect(dialog.get_by_text("Releases")).to_be_visible()
    dialog.get_by_label("Single-key shortcuts").uncheck()
    bobs.page.keyboard.press("Escape")
    bobs.page.keyboard.press("e")
    bobs.page.keyboard.press("?")
    expect(dialog).to_be_hidden()
    expect(bobs.page).to_have_url(re.compile("/agents/pilot/$"))


def test_a_toast_is_undone_by_key_and_others_fade_unless_hovered(logged_in_page, bob, workspace):
    bobs = Visit(logged_in_page(bob, alone=True), workspace.slug)
    make_soul(workspace, "Calm")
    bobs.go("souls/calm/")
    bobs.page.clock.install()
    bobs.press("Archive")
    bobs.page.clock.run_for(60_000)
    bobs.sees_message("Archived")
    assert not axe_violations(bobs.page)
    with bobs.page.expect_navigation():
        bobs.page.keyboard.press("u")
    bobs.sees_message("Restored")
    bobs.go("souls/calm/edit/")
    bobs.press("Save")
    toast = bobs.page.locator("#dr-alerts .dr-alert")
    toast.hover()
    bobs.page.clock.run_for(60_000)
    expect(toast).to_be_visible()
    bobs.page.mouse.move(5, 5)
    bobs.page.clock.run_for(10_000)
    expect(toast).to_have_count(0)


# Presses the button twice, and stores the busy state when the page is left. The bar is reported by the page,
# because Playwright reads nothing from a page while the request for the next one is held.
PRESS_TWICE = """() => {
  const button = document.querySelector("main form .btn-primary");
  const bar = () => document.querySelector(".dr-progress");
  addEventListener("pagehide", () => sessionStorage.setItem("seen",
    JSON.stringify([button.ariaBusy, button.form.ariaBusy, bar()?.checkVisibility()])));
  const timer = setInterval(() => {
    if (!bar()?.checkVisibility()) return;
    clearInterval(timer);
    console.info("The bar is visible.");
  }, 20);
  button.click();
  button.click();
}"""


def test_a_slow_form_is_sent_once_and_a_failed_fragment_is_retried(bobs, workspace, page_errors):
    bobs.go("souls/new/")
    bobs.fill(Name="Calm")
    held = HeldRequests(bobs.page, "**/souls/new/")
    # The server is slow: it answers after the bar has appeared.
    with bobs.page.expect_console_message(lambda message: message.text == "The bar is visible."):
        bobs.page.evaluate(PRESS_TWICE)
        question = held.next()
        assert "dramatis-review" in question.request.headers
        question.continue_()
        post = held.next()
        assert post.request.is_navigation_request()
    post.continue_()
    bobs.sees_message("created")
    assert bobs.page.evaluate("() => JSON.parse(sessionStorage.getItem('seen'))") == ["true", "true", True]
    assert not held.routes
    assert Soul.objects.in_workspace(workspace).count() == 1

    held.stop()
    # Chromium and htmx log the failed requests.
    page_errors.expect("impact|htmx")
    bobs.go("souls/calm/edit/")
    bobs.fill(Text="Be quick.")
    bobs.page.route("**/impact/**", lambda route: route.abort())
    impact_button = bobs.page.get_by_role("button", name="Preview impact")
    impact_button.click()
    bobs.sees_message("cannot be reached")
    bobs.page.unroute("**/impact/**")
    bobs.page.get_by_role("button", name="Try again").click()
    expect(bobs.page.locator("#impact")).not_to_be_empty()
    expect(bobs.page.get_by_text("cannot be reached")).to_be_hidden()
    bobs.page.context.clear_cookies()
    impact_button.click()
    bobs.sees_message("You have been signed out")
    link = bobs.page.get_by_role("link", name="Sign in").get_attribute("href")
    assert link.endswith(f"?next=%2Fw%2F{workspace.slug}%2Fsouls%2Fcalm%2Fedit%2F")


# Returns the lightness, from 0 to 1, of a text and of the backgrounds around it.
COLOURS_SCRIPT = """(selector) => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const measure = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    return alpha ? (red + green + blue) / 765 : null;
  };
  const start = document.querySelector(selector);
  const grounds = [];
  for (let one = start; one; one = one.parentElement) {
    grounds.push(measure(getComputedStyle(one).backgroundColor));
  }
  return { text: measure(getComputedStyle(start).color), grounds: grounds.filter((one) => one !== null) };
}"""


def test_print_shows_only_the_record(bobs, workspace):
    make_agent(workspace, "pilot", channels=[make_channel(workspace, "deck")])
    page = bobs.page
    prompt = AgentPrompt.objects.in_workspace(workspace).get()
    version = f"prompts/{prompt.pk}/versions/1/"
    for path in ("audit/", "agents/pilot/versions/", version, "ledger/"):
        bobs.go(path)
        # In the dark mode of the system too, it is dark text on white paper.
        page.emulate_media(media="print", color_scheme="dark")
        colours = page.evaluate(COLOURS_SCRIPT, "main h1, main h2")
        assert colours["text"] < 0.3, path
        assert all(lightness > 0.9 for lightness in colours["grounds"]), path
        for selector in (".dr-sidebar", ".dr-topbar", ".dr-filters"):
            if not page.locator(selector).count():
                continue
            expect(page.locator(selector).first).to_be_hidden()
        if page.locator("main time").count():
            after = page.locator("main time").first.evaluate(
                "one => getComputedStyle(one, '::after').content"
            )
            assert "UTC" in after or "GMT" in after
        page.emulate_media(media="screen", color_scheme="light")


@pytest.mark.hard
def test_the_style_guide_is_accessible(visitor, settings):
    settings.DEBUG = True
    page = visitor()
    assert page.goto("/styleguide/").status == 200
    assert not [*axe_violations(page), *find_overflows(page)]

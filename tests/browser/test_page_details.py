"""Details of pages in a browser: menu, switches, dialogs, filters, previews, saving without a connection."""

import re

import pytest
from playwright.sync_api import Dialog, expect

from skills.models import Source
from tests.browser.page_checks import axe_violations
from tests.browser.test_keys import an_hour_passes, confirm
from tests.browser.users import Visit
from tests.factories import PASSWORD, make_agent, make_channel, make_memory, make_soul, make_source, refreshed
from tests.skills.files.file_samples import GOOD, write

pytestmark = pytest.mark.slow

IN_VIEW = """element => {
  const box = element.getBoundingClientRect();
  return box.top >= 0 && box.bottom <= innerHeight;
}"""
TOGGLE_COLOURS = """element => {
  const knob = getComputedStyle(element, "::before");
  return [knob.backgroundColor, getComputedStyle(element).backgroundColor];
}"""


def test_the_menu_fits_on_a_small_screen_and_shows_where_one_is(alices):
    page = alices.page
    page.set_viewport_size({"width": 1366, "height": 768})
    alices.go("")
    menu = page.locator("#dr-sidebar")
    entries = menu.locator("a.dr-nav-link:visible, summary:visible")
    assert entries.count() == 9
    assert all(entries.nth(index).evaluate(IN_VIEW) for index in range(9))
    for path in ("keys/", "members/", "audit/", "settings/"):
        alices.go(path)
        current = menu.locator('[aria-current="page"]')
        expect(current).to_have_count(1)
        assert current.evaluate(IN_VIEW), path


def test_a_switch_that_is_on_looks_different_from_its_background(alices):
    page = alices.page
    alices.go("")
    page.keyboard.press("?")
    toggle = page.locator("#dr-help .toggle").first
    expect(toggle).to_be_checked()
    knob, background = toggle.evaluate(TOGGLE_COLOURS)
    assert knob != background
    assert knob not in {"rgb(255, 255, 255)", "rgba(0, 0, 0, 0)"}


def test_dangerous_actions_ask_with_a_dialog_of_the_page(alices, workspace):
    page, questions = alices.page, []

    def dismiss(dialog: Dialog) -> None:
        questions.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    alices.go("settings/")
    page.get_by_label("Keep ledger rows for (months)").fill("30")
    page.get_by_role("button", name="Save retention period").click()
    dialog = page.get_by_role("dialog", name="Are you sure?")
    expect(dialog).to_contain_text("Rows older than the new period will be deleted")
    assert not axe_violations(page)
    dialog.get_by_role("button", name="Cancel").click()
    workspace.refresh_from_db()
    assert workspace.ledger_months == 24
    assert not questions


def test_a_filter_applies_at_once(alices, workspace):
    make_agent(workspace, "pilot", layout="opal")
    make_agent(workspace, "cook")
    alices.go("agents/")
    alices.choose_filter("Layout", "opal")
    expect(alices.page.get_by_role("link", name="Cook", exact=True)).to_have_count(0)
    expect(alices.page.get_by_label("Layout")).to_be_focused()
    expect(alices.page.get_by_role("button", name="Apply")).to_be_hidden()


def test_the_filters_of_the_audit_log_apply_at_once(alices, workspace):
    make_agent(workspace, "pilot")
    alices.go("audit/")
    page = alices.page
    with page.expect_navigation():
        page.get_by_label("Target").select_option("agent")
    expect(page).to_have_url(re.compile("kind=agent"))
    name = page.get_by_role("search", name="Filters").get_by_label("Name")
    name.fill("nothing")
    page.get_by_role("heading", name="Audit log", level=1).click()
    expect(page).to_have_url(re.compile("q=nothing"))
    expect(name).to_be_focused()


def test_the_impact_comes_into_view(alices, workspace):
    soul = make_soul(workspace, text="Be brave.")
    make_agent(workspace, "pilot", soul=soul, channels=[make_channel(workspace, "deck")])
    page = alices.page
    page.set_viewport_size({"width": 1280, "height": 500})
    alices.go("agents/pilot/edit/")
    page.get_by_role("button", name="Preview impact").click()
    heading = page.get_by_role("heading", name="Impact")
    expect(heading).to_be_focused()
    expect(heading).to_be_in_viewport()


def test_saving_without_a_connection_keeps_the_text(alices, workspace, page_errors):
    make_soul(workspace, text="Be brave.")
    page = alices.page
    alices.go("souls/calm/edit/")
    page.locator("[name=name]").fill("Calmer")
    page_errors.expect("ERR_INTERNET")
    page.context.set_offline(True)
    page.get_by_role("main").get_by_role("button", name="Save", exact=True).click()
    expect(
        page.get_by_text("The server cannot be reached. Check your connection, then try again.")
    ).to_be_visible()
    expect(page.locator("[name=name]")).to_have_value("Calmer")
    page.context.set_offline(False)


def test_the_count_beside_the_inbox_follows_the_list(alices, workspace, tmp_path, settings):
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    write(tmp_path / "AGENTS.md", GOOD)
    source: Source = make_source(workspace, tmp_path, approval="manual")
    refreshed(source)
    page = alices.page
    alices.go("inbox/")
    count = page.locator("#nav-count-i")
    expect(count).to_have_text("1")
    write(tmp_path / "docs/AGENTS.md", GOOD)
    refreshed(source)
    expect(count).to_have_text("2")


def test_a_key_opens_the_form_of_a_new_record_and_studio_is_listed_once(alices):
    page = alices.page
    alices.go("souls/")
    page.keyboard.press("?")
    help_dialog = page.locator("#dr-help")
    expect(help_dialog).to_be_visible()
    expect(help_dialog.get_by_text("Studio", exact=True)).to_have_count(1)
    expect(help_dialog.get_by_text("New record")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(help_dialog).to_be_hidden()
    page.keyboard.press("n")
    page.wait_for_url("**/souls/new/")


def test_replay_offers_the_channels_of_the_agent_and_quick_times(alices, workspace):
    deck, radio = make_channel(workspace, "deck"), make_channel(workspace, "radio")
    make_agent(workspace, "cook", channels=[radio])
    make_agent(workspace, "pilot", channels=[deck])
    page = alices.page
    alices.go("time-machine/")
    page.get_by_label("Agent").select_option("pilot")
    expect(page.get_by_label("Channel")).to_have_value("deck")
    assert page.locator("[name=channel] option:not([disabled])").count() == 1
    alices.leave_by(page.get_by_role("button", name="1 day ago"))
    expect(page.get_by_text(re.compile("did not exist yet"))).to_be_visible()
    assert not axe_violations(page)


def test_a_rejected_memory_can_be_brought_back(alices, workspace):
    make_memory(workspace, "The reef moved.", status="proposed")
    page = alices.page
    alices.go("memories/board/")
    page.locator(".dr-memo", has_text="The reef moved.").get_by_role("button", name="Reject").click()
    alices.leave_by(page.get_by_role("button", name="Undo"))
    alices.go("memories/board/")
    proposed = page.locator("#cards-proposed").get_by_role("link", name="The reef moved.", exact=True)
    expect(proposed).to_be_visible()


def test_a_form_that_is_refused_after_signing_in_again_is_at_its_own_address(
    logged_in_page, alice, workspace
):
    alice.set_password(PASSWORD)
    alice.save()
    visit = Visit(logged_in_page(alice), workspace.slug)
    confirm(visit, "keys/new/", PASSWORD)
    an_hour_passes(visit.page)
    visit.press("Create key")
    visit.sees(f"This action in {workspace.name} requires a recent sign-in.")
    cancel = visit.page.get_by_role("link", name="Cancel")
    expect(cancel).to_have_attribute("href", f"/w/{workspace.slug}/")
    visit.fill(Password=PASSWORD)
    assert visit.press("Confirm") == 422
    address = re.compile(r"/w/[a-z]+/keys/new/$")
    expect(visit.page).to_have_url(address)
    expect(visit.page.locator("main form[method=post]").first).to_have_attribute("action", address)
    response = visit.page.reload()
    assert response is not None
    assert (response.request.method, response.status) == ("GET", 200)


def test_the_slug_follows_the_name_until_it_is_edited(alices):
    page = alices.page
    for path in ("agents/new/", "/workspaces/new/"):
        alices.go(path)
        page.get_by_label("Name", exact=True).fill("")
        page.get_by_label("Name", exact=True).press_sequentially("Hut Süd 2")
        expect(page.locator("[name=slug]")).to_have_value("hut-sud-2")
        page.locator("[name=slug]").fill("mine")
        page.get_by_label("Name", exact=True).press_sequentially("x")
        expect(page.locator("[name=slug]")).to_have_value("mine")

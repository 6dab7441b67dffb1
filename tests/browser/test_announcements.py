"""Screen reader and keyboard: changes without a page load are announced, and the focus is never lost."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from personas.models import Workspace
from tests.browser.conftest import PageErrors
from tests.browser.users import Visit
from tests.factories import make_agent, make_channel, make_soul

pytestmark = pytest.mark.slow


def announcement(page: Page) -> Locator:
    return page.locator("#dr-told")


@pytest.mark.hard
def test_lists_announce_changes_and_keep_the_focus(bobs: Visit, workspace: Workspace) -> None:
    page = bobs.page
    for label in ("Calm", "Quick"):
        make_soul(workspace, label)
    bobs.go("souls/?q=quick")
    expect(announcement(page)).to_have_text("1 row matches the filters.")
    bobs.go("souls/")
    # A live region that is hidden while empty would not be announced.
    expect(page.locator("#dr-alerts")).not_to_have_css("display", "none")
    page.get_by_role("checkbox", name="Select Calm").check()
    expect(announcement(page)).to_have_text("1 selected")
    page.keyboard.press("b")
    bar = page.get_by_role("form", name="Actions for selected rows")
    expect(bar).to_be_focused()
    bar.get_by_role("button", name="Archive").press("Enter")
    toasts = page.locator("#dr-alerts")
    expect(toasts).to_match_aria_snapshot(
        """
        - status:
          - text: "Archived: 1 soul."
          - button "Undo"
          - button "Dismiss":
            - img "Dismiss"
        """
    )
    # Inserted again, because text that arrives with the page is not announced.
    expect(toasts.locator("[data-heard]")).to_have_count(1)
    expect(page.get_by_role("button", name="Undo")).to_have_accessible_description(re.compile("Archived"))
    page.get_by_role("button", name="Dismiss").press("Enter")
    expect(page.get_by_role("main")).to_be_focused()

    page.locator(".dr-exports summary").press("Enter")
    expect(page.locator(".dr-exports")).to_have_attribute("open", "")
    page.get_by_role("link", name="JSON").focus()
    page.keyboard.press("Tab")
    expect(page.locator(".dr-exports")).not_to_have_attribute("open", "")

    bobs.go("souls/new/")
    assert bobs.press("Create soul") == 422
    expect(page.get_by_role("alert")).to_be_focused()
    expect(page.get_by_role("alert")).to_match_aria_snapshot(
        """
        - alert:
          - paragraph: "Fix these fields and save again:"
          - list:
            - listitem:
              - link "Name"
        """
    )


@pytest.mark.hard
def test_the_studio_announces_changes_and_keeps_the_focus(
    bobs: Visit, workspace: Workspace, page_errors: PageErrors
) -> None:
    page = bobs.page
    deck = make_channel(workspace, "deck")
    make_agent(
        workspace, "pilot", soul=make_soul(workspace, text="Be brave."), channels=[deck], layout="dramatis"
    )
    bobs.go("studio/pilot/?layout=dramatis")
    page.locator("[data-field=id_text]").click()
    page.keyboard.type("Be quick. ")
    expect(announcement(page)).to_have_text(
        re.compile(r"^Preview updated: \d+ tokens \+\d+ compared with version 1")
    )

    layouts = page.get_by_role("navigation", name="Layout")
    layouts.get_by_role("link", name="moltis").press("Enter")
    expect(layouts.get_by_role("link", name="moltis")).to_have_attribute("aria-current", "page")
    expect(layouts.get_by_role("link", name="moltis")).to_be_focused()
    page.get_by_role("button", name="Compare", exact=True).press("Enter")
    expect(announcement(page)).to_have_text("6 layouts compared.")
    expect(page.get_by_role("button", name="Compare again")).to_be_focused()

    label = page.get_by_label("Name", exact=True)
    if not label.is_visible():
        page.get_by_text("Other fields").click()
    # Chromium logs the 422 of the invalid form.
    page_errors.expect("422")
    label.fill("")
    expect(label).to_have_accessible_description(re.compile("required"))
    expect(announcement(page)).to_contain_text("Fix these fields to update the preview: Name")
    expect(page.locator("#studio-preview [role=alert]")).to_have_count(0)

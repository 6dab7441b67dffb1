"""The Studio in a browser: the preview follows the input at once, and no input is ever lost."""

import re
from time import perf_counter

import pytest
from django.conf import settings
from playwright.sync_api import Locator, Page, expect

from personas.actors import Actor
from personas.models import Soul, User, Workspace
from personas.records.services import edit_record
from personas.roles import Role
from prompts.models import AgentPrompt
from tests.browser.conftest import PageErrors, Visitor
from tests.browser.held_requests import HeldRequests
from tests.browser.page_checks import axe_violations, find_overflows
from tests.browser.users import Visit, field, value_of
from tests.factories import join, make_agent, make_channel, make_identity, make_memory, make_soul, make_user

pytestmark = pytest.mark.slow

STUDIO_URL = "studio/pilot/?layout=dramatis"
# Unsaved text is copied to the browser's storage after a pause in typing.
IS_STORED = "(text) => Object.values(localStorage).join().includes(text)"
OLD = "# Calm\n\nBe brave.\n\nBe kind."


@pytest.fixture(autouse=True)
def soul(workspace: Workspace) -> Soul:
    """The soul of an agent whose only prompt is in production."""
    soul = make_soul(workspace, text=OLD)
    make_memory(workspace, "High water is at six.")
    make_agent(
        workspace,
        "pilot",
        identity=make_identity(workspace),
        soul=soul,
        channels=[make_channel(workspace, "deck")],
        layout="dramatis",
    )
    return soul


def editor(page: Page) -> Locator:
    return field(page, "Text")


def edited_span(page: Page, text: str) -> Locator:
    return page.locator("#studio-preview .dr-stretch.is-edited", has_text=text)


def append_text(page: Page, text: str) -> None:
    """Type at the end of the text."""
    editor(page).click()
    page.keyboard.press("Control+End")
    page.keyboard.type(text)


def number_of_versions(workspace: Workspace) -> int:
    prompt = AgentPrompt.objects.in_workspace(workspace).select_related("latest").get()
    assert prompt.latest is not None
    return prompt.latest.number


def test_input_appears_in_the_preview_without_a_page_load(bobs: Visit, workspace: Workspace) -> None:
    page = bobs.page
    bobs.go(STUDIO_URL)
    page.evaluate("() => { window.isSamePage = true }")
    append_text(page, "\n\nBe quick.")
    paused = perf_counter()
    expect(edited_span(page, "Be quick.")).to_be_visible()
    print(f"drawn {1000 * (perf_counter() - paused):.0f} ms after the pause in typing")
    expect(edited_span(page, "Be brave.")).to_have_count(0)
    assert (Soul.objects.in_workspace(workspace).get().text, number_of_versions(workspace)) == (OLD, 1)

    page.get_by_role("navigation", name="Layout").get_by_role("link", name="moltis").click()
    expect(page).to_have_url(re.compile("layout=moltis"))
    expect(page.get_by_role("link", name="moltis")).to_have_attribute("aria-current", "page")
    expect(edited_span(page, "Be quick.")).to_be_visible()
    assert value_of(editor(page)) == f"{OLD}\n\nBe quick."

    page.get_by_text("Preview with call values").click()
    page.get_by_label("Preview as served").check()
    expect(page.locator("#studio-preview")).to_contain_text("As served")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("table", name="The six layouts").get_by_role("row")).to_have_count(7)
    assert page.evaluate("() => window.isSamePage")
    assert not axe_violations(page) + find_overflows(page)


def test_a_click_on_a_span_opens_its_record_and_keeps_the_draft(bobs: Visit) -> None:
    page = bobs.page
    bobs.go(STUDIO_URL)
    page.locator("#studio-preview .dr-stretch", has_text="Be kind.").click()
    expect(editor(page)).to_be_focused()
    page.keyboard.press("Control+End")
    page.keyboard.type(" Always.")
    expect(edited_span(page, "Always.")).to_be_visible()

    page.locator("#studio-preview .dr-stretch", has_text="High water").click()
    page.wait_for_url(re.compile("part=memories"))
    expect(editor(page)).to_have_text("High water is at six.")
    expect(editor(page)).to_be_focused()
    page.keyboard.type("Low water is at noon.")
    expect(edited_span(page, "Low water is at noon.")).to_be_visible()

    page.get_by_text("Switch part").click()
    page.get_by_role("navigation", name="Parts of this prompt").get_by_role("link", name="Calm").click()
    expect(page.locator("#studio-kept")).to_contain_text("You saved this draft")
    expect(edited_span(page, "Always.")).to_be_visible()


def test_a_draft_is_stored_reviewed_and_saved_by_keyboard(bobs: Visit, workspace: Workspace) -> None:
    page = bobs.page
    bobs.go(STUDIO_URL)
    editor(page).focus()
    page.keyboard.press("Control+End")
    page.keyboard.type("\nBe quick.")
    expect(page.locator("#studio-status")).to_have_text("Unsaved")
    page.keyboard.press("Control+s")
    expect(page.locator("#studio-status")).to_contain_text("Draft saved")
    page.keyboard.press("Tab")
    expect(editor(page)).not_to_be_focused()
    page.keyboard.press("Control+Enter")
    page.wait_for_url(re.compile("/review/"))
    assert not axe_violations(page)
    with page.expect_navigation():
        page.get_by_role("button", name=re.compile("^Save ")).press("Enter")
    expect(page.get_by_role("status").filter(has_text="saved")).to_be_visible()
    assert (Soul.objects.in_workspace(workspace).get().revision, number_of_versions(workspace)) == (2, 2)
    bobs.go(STUDIO_URL)
    expect(editor(page)).to_contain_text("Be quick.")
    expect(page.get_by_role("button", name="Restore text")).to_have_count(0)


@pytest.mark.parametrize("path", [STUDIO_URL, pytest.param("souls/calm/edit/", marks=pytest.mark.hard)])
def test_a_closed_tab_loses_nothing(bobs: Visit, path: str) -> None:
    bobs.go(path)
    append_text(bobs.page, " Be quick.")
    bobs.page.wait_for_function(IS_STORED, arg="Be quick.")
    bobs.page.close()
    page = bobs.page.context.new_page()
    again = Visit(page, bobs.slug)
    again.go(path)
    expect(page.get_by_role("group", name="Unsaved text")).to_contain_text("You have unsaved text from")
    assert value_of(editor(page)) == OLD
    page.get_by_role("button", name="Restore text").click()
    expect(editor(page)).to_contain_text("Be kind. Be quick.")
    again.go(path)
    page.get_by_role("button", name="Discard").click()
    again.go(path)
    expect(page.get_by_role("button", name="Restore text")).to_have_count(0)


def test_a_change_by_another_user_is_shown_before_saving(alices: Visit, soul: Soul, bob: User) -> None:
    page = alices.page
    alices.go(STUDIO_URL)
    append_text(page, " Says Alice.")
    edit_record(soul, {"text": "Be Bob."}, expected=1, by=Actor.person(bob))
    # The request that the page sends every few seconds.
    poll = "htmx.ajax('GET', document.getElementById('studio-state').getAttribute('hx-get'), '#studio-state')"
    page.evaluate(poll)
    chip = page.locator("#studio-state")
    expect(chip).to_contain_text("Changed by Bob")
    expect(chip.get_by_role("link", name="Compare")).to_be_visible()
    assert value_of(editor(page)) == f"{OLD} Says Alice."
    assert not axe_violations(page)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text("Bob changed this")
    expect(page.get_by_role("button", name="Discard my draft, keep the saved version")).to_be_visible()
    assert Soul.objects.in_workspace(soul.workspace).get().text == "Be Bob."


def test_viewers_see_the_prompt_and_cannot_edit(logged_in_page: Visitor, workspace: Workspace) -> None:
    viewer = make_user("Vera")
    join(workspace, viewer, Role.VIEWER)
    page = logged_in_page(viewer)
    Visit(page, workspace.slug).go(STUDIO_URL)
    expect(editor(page)).to_have_attribute("aria-readonly", "true")
    append_text(page, "Nonsense")
    assert value_of(editor(page)) == OLD
    expect(page.locator("#studio-preview")).to_contain_text("Be brave.")
    expect(page.get_by_role("button", name="Save draft")).to_have_count(0)
    assert not axe_violations(page)


def test_a_slow_or_failing_server_loses_no_input(bobs: Visit, page_errors: PageErrors) -> None:
    page = bobs.page
    bobs.go(STUDIO_URL)
    page_errors.expect("/preview/|status of 401")
    held = HeldRequests(page, "**/preview/**")
    append_text(page, " Be slow.")
    expect(page.locator("#studio-preview")).to_have_attribute("aria-busy", "true")
    held.next("Be slow.").fulfill(status=500, body="")
    expect(page.locator("#studio-status")).to_contain_text("Your text is kept")
    expect(page.locator("#studio-preview")).to_contain_text("Be brave.")
    assert value_of(editor(page)) == f"{OLD} Be slow."
    held.stop()
    page.keyboard.type(" Be well.")
    expect(edited_span(page, "Be slow. Be well.")).to_be_visible()
    expect(page.locator("#studio-status")).not_to_contain_text("safe")

    page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    page.keyboard.press("Control+s")
    expect(page.locator("#studio-status")).to_contain_text("your session ended")
    # The copy is stored at the next pause in typing.
    page.wait_for_function(IS_STORED, arg="Be well.")


def test_panes_are_tabs_on_a_phone_and_resizable_on_a_desktop(bobs: Visit) -> None:
    page = bobs.page
    bobs.go(STUDIO_URL)
    line = page.get_by_role("separator", name="Editor width")
    before = page.locator("#studio-edit").bounding_box()
    line.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    after = page.locator("#studio-edit").bounding_box()
    assert before is not None
    assert after is not None
    assert after["width"] > before["width"] + 50
    page.reload()
    expect(line).to_have_attribute("aria-valuenow", "60")

    page.set_viewport_size({"width": 390, "height": 844})
    expect(line).to_be_hidden()
    expect(editor(page)).to_be_visible()
    page.get_by_role("tab", name="Edit").focus()
    page.keyboard.press("ArrowRight")
    expect(editor(page)).to_be_hidden()
    expect(page.get_by_role("tabpanel", name="Prompt")).to_contain_text("Be brave.")
    assert not axe_violations(page)

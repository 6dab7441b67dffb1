"""From an empty workspace to the first fetch of a prompt, with few clicks."""

import re
import shlex
from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import Page, expect

from personas.models import User
from personas.workspaces.services import create_workspace
from prompts.studio.quick_start.forms import QuickStartForm
from tests.browser.page_checks import axe_violations, find_overflows
from tests.browser.users import Visit
from tests.browser.windows import PATIENCE_MS

pytestmark = pytest.mark.slow

MAX_CLICKS = 8
# Create an agent, soul, channel, create, copy. One more is a longer path, even if it is within the limit.
EXPECTED_CLICKS = 6
# Opening the list of channels and choosing one. Playwright chooses without clicks.
SELECT_CLICKS = 2
# Counts the clicks of a person, on all pages of the window. Clicks of scripts are not trusted events.
COUNT_CLICKS = """document.addEventListener("click", (event) => {
  if (event.isTrusted) sessionStorage.setItem("clicks", Number(sessionStorage.getItem("clicks") || 0) + 1);
}, true);"""


def count_clicks(page: Page) -> int:
    return int(page.evaluate("() => Number(sessionStorage.getItem('clicks') || 0)"))


def parse_commands(text: str) -> tuple[str, dict[str, str]]:
    """Return the URL and the headers of the shown commands, as a shell would send them."""
    secret = re.search(r"^export DRAMATIS_KEY=(\S+)$", text, re.MULTILINE)
    curl = shlex.split(text.splitlines()[-1].replace("$DRAMATIS_KEY", secret[1] if secret else ""))
    name, _, value = curl[curl.index("-H") + 1].partition(": ")
    return curl[-1], {name: value}


@pytest.fixture
def empty(logged_in_page, alice: User, settings, live_server) -> Visit:
    """Alice in a workspace without agents, as a new one is."""
    settings.PUBLIC_URL = live_server.url
    create_workspace("Quiet bay", "quiet-bay", owner=alice)
    page = logged_in_page(alice, alone=True)
    page.add_init_script(COUNT_CLICKS)
    return Visit(page, "quiet-bay")


def enter_name(page: Page, name: str) -> None:
    """Type the name. It has the focus; without it, a person would click it first."""
    field = page.get_by_label("Name")
    if field.get_attribute("autofocus") is None:
        field.click()
    expect(field).to_be_focused()
    page.keyboard.type(name)


def check_page(page: Page) -> None:
    assert axe_violations(page) + find_overflows(page) == []


def walk_to_the_first_request(
    visit: Visit, check: Callable[[Page], None] = check_page, wait_ms: int = PATIENCE_MS
) -> None:
    """Create an agent, run the shown command, wait for the green status, and check the number of clicks."""
    page = visit.page
    visit.go()
    visit.leave_by(page.get_by_role("link", name="Create an agent", exact=True))
    # The slug is filled in from the name, and the preview shows the prompt.
    enter_name(page, "Front Desk")
    expect(page.get_by_label("Slug")).to_have_value("front-desk")
    page.get_by_label("Soul").click()
    page.keyboard.type("You answer the phone at the hut.")
    expect(page.locator("#quick-preview")).to_contain_text("You answer the phone at the hut.")
    page.get_by_label("Channel").select_option(label="Slack")
    check(page)

    visit.leave_by(page.get_by_role("button", name="Create agent and API key"))
    visit.sees("Waiting for the first request…")
    page.get_by_role("button", name="Copy the code for Terminal").click()
    check(page)
    url, headers = parse_commands(page.locator("#line-shell").inner_text())
    assert url.endswith("/api/v1/agents/front-desk/channels/slack/prompt")
    response = httpx.get(url, headers=headers, timeout=30, trust_env=False)
    assert response.status_code == 200
    assert "You answer the phone at the hut." in response.text

    # The page turns green without a reload.
    status = page.locator("#first-request.dr-alert-success")
    expect(status).to_contain_text("First request received", timeout=wait_ms)
    clicks = count_clicks(page) + SELECT_CLICKS
    print(f"clicks to the first request: {clicks}")
    assert clicks == EXPECTED_CLICKS <= MAX_CLICKS, f"{clicks} clicks instead of {EXPECTED_CLICKS}"


def test_an_empty_workspace_gets_its_first_request_within_eight_clicks(empty: Visit):
    walk_to_the_first_request(empty)
    # A reload sends no form again: it shows the same page without the key.
    page = empty.page
    assert page.url.endswith("/quick-start/front-desk/slack/")
    reloaded = page.reload()
    assert reloaded is not None
    assert reloaded.request.method == "GET"
    expect(page.locator("#first-request.dr-alert-success")).to_be_visible()
    expect(page.get_by_role("button", name="Create API key")).to_be_visible()


@pytest.mark.planted
def test_a_planted_click_is_counted(empty: Visit, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(QuickStartForm.base_fields["name"].widget.attrs, "autofocus")
    with pytest.raises(AssertionError, match=f"{EXPECTED_CLICKS + 1} clicks instead of {EXPECTED_CLICKS}"):
        walk_to_the_first_request(empty, check=lambda page: None)


@pytest.mark.planted
def test_a_status_that_stays_grey_is_found(empty: Visit, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("prompts.studio.quick_start.views.find_first_fetch", lambda agent, channel: None)
    with pytest.raises(AssertionError, match="First request received"):
        walk_to_the_first_request(empty, check=lambda page: None, wait_ms=3_000)

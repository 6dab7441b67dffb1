"""Fragment requests of every page: slow ones show progress, failed ones a message, and nothing disappears."""

from typing import Any

import pytest
from playwright.sync_api import Page, Request, Route, expect

from tests.browser.held_requests import HeldRequests
from tests.browser.page_checks import sample
from tests.browser.page_errors import PageErrors
from tests.browser.users import Visit
from tests.factories import make_agent, make_channel, make_soul
from tests.skills.files.file_samples import make_source_in_every_status

pytestmark = pytest.mark.slow

# Path, element that sends the request, and the event that triggers it; empty: it is sent on page load.
FRAGMENTS = (
    ("inbox/", ".dr-peek[hx-get]", "dr-peek"),
    ("ledger/", "[hx-trigger=load]", ""),
    ("souls/calm/edit/", "main button[hx-post]", "click"),
    ("skills/new/", "form[hx-post]", "input"),
    ("studio/pilot/", "#studio-form[hx-post], form[hx-post]", "input"),
    ("agents/pilot/edit/", "main button[hx-post]", "click"),
)
ERROR = "Something went wrong"


class HeldFragments(HeldRequests):
    """Holds htmx requests back until the test lets them fail."""

    def hold(self, route: Route) -> None:
        if route.request.headers.get("hx-current-url"):
            super().hold(route)
        else:
            route.fallback()

    def is_awaited(self, request: Request, text: str) -> bool:
        """Whether the current page sent it. Requests that the page before sent by polling are still held."""
        return request.headers["hx-current-url"] == self.page.url and super().is_awaited(request, text)

    def fail(self) -> None:
        while self.routes:
            self.routes.pop().fulfill(status=500, body="")


@pytest.fixture
def held_requests(alices: Visit, workspace: Any, tmp_path: Any, settings: Any) -> HeldFragments:
    """Hold requests of pages that have content in every fragment."""
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    make_source_in_every_status(workspace, tmp_path)
    soul, deck = make_soul(workspace, "Calm", text="Be calm."), make_channel(workspace, "deck")
    make_agent(workspace, "pilot", soul=soul, channels=[deck])
    return HeldFragments(alices.page, "**/*")


def trigger_request(page: Page, css: str, event: str) -> None:
    element = page.locator(css).first
    expect(element).to_be_attached()
    if event:
        element.evaluate("(one, name) => htmx.trigger(one, name)", event)


def heading_of(page: Page) -> str:
    return str(page.get_by_role("main").get_by_role("heading", level=1).inner_text())


def test_a_failing_server_shows_a_message_on_every_page_with_fragments(
    held_requests: HeldFragments, alices: Visit, page_errors: PageErrors, subtests: Any
) -> None:
    page = held_requests.page
    # The browser logs each failure to the console.
    page_errors.expect("500")
    for path, css, event in sample(FRAGMENTS):
        with subtests.test(path):
            alices.go(path)
            heading = heading_of(page)
            trigger_request(page, css, event)
            held_requests.wait()
            # Slow: the page marks one of its parts as busy.
            expect(page.locator("[aria-busy=true], .htmx-request").first).to_be_attached()
            held_requests.fail()
            alert = page.locator("#dr-alerts, #studio-status, main [role=alert]")
            expect(
                alert.filter(has_text=ERROR).or_(alert.filter(has_text="Your text is kept")).first
            ).to_be_visible()
            assert heading_of(page) == heading
            held_requests.fail()

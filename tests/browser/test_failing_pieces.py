"""Each screen that fetches a piece of itself: a slow server shows, a failing one is told, nothing goes."""

from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from personas.models import Workspace
from tests.browser.conftest import Visitor
from tests.browser.watching import Watch

SOUL = "souls/hut-table/edit/"
# Where, what asks there, and the event that makes it ask; without one it asks when the page is there.
PIECES = (
    ("inbox/", ".dr-peek[hx-get]", "dr-peek"),
    ("ledger/", "[hx-trigger=load]", ""),
    (SOUL, "main button[hx-post]", "click"),
    ("skills/new/", "form[hx-post]", "input"),
    ("studio/hut-support/", "#studio-form[hx-post], form[hx-post]", "input"),
    ("agents/hut-support/edit/", "main button[hx-post]", "click"),
)
TOLD = "Something broke on our side"


class Line:
    """What goes to the server piece by piece, held until the test lets it fail."""

    def __init__(self, page: Page) -> None:
        self.page, self.held = page, list[Route]()
        page.route("**/*", self.take)

    def take(self, route: Route) -> None:
        if route.request.headers.get("hx-request"):
            self.held.append(route)
        else:
            route.fallback()

    def wait(self) -> None:
        for _ in range(60):
            if self.held:
                return
            self.page.wait_for_timeout(50)
        raise AssertionError("Nothing was asked.")

    def fail(self) -> None:
        while self.held:
            self.held.pop().fulfill(status=500, body="")


@pytest.fixture
def line(demo_page: Visitor) -> Line:
    return Line(demo_page())


def make_it_ask(page: Page, css: str, event: str) -> None:
    piece = page.locator(css).first
    expect(piece).to_be_attached()
    if event:
        piece.evaluate("(one, name) => htmx.trigger(one, name)", event)


def words_of(page: Page) -> str:
    return str(page.get_by_role("main").get_by_role("heading", level=1).inner_text())


def test_a_failing_server_is_told_of_on_every_screen_that_asks_for_more(
    line: Line, demo: Workspace, watch: Watch, subtests: Any
) -> None:
    page = line.page
    for path, css, event in PIECES:
        with subtests.test(path):
            page.goto(f"/w/{demo.slug}/{path}")
            heading = words_of(page)
            make_it_ask(page, css, event)
            line.wait()
            # Slow: the page says that it is busy with one of its parts.
            expect(page.locator("[aria-busy=true], .htmx-request").first).to_be_attached()
            line.fail()
            alert = page.locator("#dr-alerts, #studio-status, main [role=alert]")
            expect(
                alert.filter(has_text=TOLD).or_(alert.filter(has_text="Your text is safe")).first
            ).to_be_visible()
            assert words_of(page) == heading
            line.fail()
    # The browser itself speaks of each failure.
    watch.complaints = [
        said for said in watch.complaints if "status of 500" not in said and "500" not in said
    ]

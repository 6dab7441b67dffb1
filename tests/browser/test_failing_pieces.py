"""Each screen that fetches a piece of itself: a slow server shows, a failing one is told, nothing goes."""

from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.looking import in_turn
from tests.browser.people import Visit
from tests.browser.watching import Watch
from tests.factories import make_agent, make_channel, make_soul
from tests.skills.files.file_samples import make_source_in_every_state

# Where, what asks there, and the event that makes it ask; without one it asks when the page is there.
PIECES = (
    ("inbox/", ".dr-peek[hx-get]", "dr-peek"),
    ("ledger/", "[hx-trigger=load]", ""),
    ("souls/calm/edit/", "main button[hx-post]", "click"),
    ("skills/new/", "form[hx-post]", "input"),
    ("studio/pilot/", "#studio-form[hx-post], form[hx-post]", "input"),
    ("agents/pilot/edit/", "main button[hx-post]", "click"),
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
def line(alices: Visit, workspace: Any, tmp_path: Any, settings: Any) -> Line:
    """Each of the pieces has something to tell."""
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    make_source_in_every_state(workspace, tmp_path)
    soul, deck = make_soul(workspace, "Calm", text="Be calm."), make_channel(workspace, "deck")
    make_agent(workspace, "pilot", soul=soul, channels=[deck])
    return Line(alices.page)


def make_it_ask(page: Page, css: str, event: str) -> None:
    piece = page.locator(css).first
    expect(piece).to_be_attached()
    if event:
        piece.evaluate("(one, name) => htmx.trigger(one, name)", event)


def words_of(page: Page) -> str:
    return str(page.get_by_role("main").get_by_role("heading", level=1).inner_text())


def test_a_failing_server_is_told_of_on_every_screen_that_asks_for_more(
    line: Line, alices: Visit, watch: Watch, subtests: Any
) -> None:
    page = line.page
    for path, css, event in in_turn(PIECES):
        with subtests.test(path):
            alices.go(path)
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

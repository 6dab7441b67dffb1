"""The tour in the documentation, walked as it is written: each bold word in it is pressed, in that order."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from personas.models import Workspace
from tests.browser.conftest import Visitor
from tests.browser.looking import complaints
from tests.browser.people import field
from tests.browser.test_accessibility import look_at, telling_pages
from tests.curl import curl_beside

DOCS = Path(__file__).resolve().parents[2] / "docs"
TOUR = (DOCS / "tour.md").read_text()
[LINE] = re.findall(r"^```text\n(.*)\n```$", TOUR, re.MULTILINE)
# Where to put the pictures of the tour, when they are wanted anew: TOUR_PICTURES=docs/img.
PICTURES = os.environ.get("TOUR_PICTURES", "")
PASSWORD = "under-the-larkfell"  # the demo prints it


class Tour:
    """Reads the words off the page and presses what they name."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.words: Iterator[str] = iter(re.findall(r"\*\*(.+?)\*\*", TOUR))

    def press(self, role: Any, inside: str = "main", *, begins: bool = False) -> None:
        name = next(self.words)
        place: Locator = self.page.locator("body") if not inside else self.page.get_by_role(inside)  # type: ignore[arg-type]
        known = re.compile(rf"^{re.escape(name)}") if begins else name
        place.get_by_role(role, name=known, exact=not begins).first.click()

    def picture(self, name: str) -> None:
        if PICTURES:
            self.page.screenshot(path=f"{PICTURES}/tour-{name}.png")


@pytest.fixture
def tour(demo: Workspace, visitor: Visitor) -> Tour:
    return Tour(visitor(viewport={"width": 1440, "height": 900}))


def test_the_tour_leads_from_the_log_in_to_a_bot_that_is_told_the_new_words_and_the_demo_suits_everyone(
    tour: Tour, demo: Workspace, live_server: Any, tmp_path: Path
) -> None:
    page = tour.page
    page.goto("/")
    page.get_by_label("Email").fill("alice@example.com")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    tour.press("button")

    expect(page.get_by_role("heading", name="Fleet")).to_be_visible()
    tour.picture("fleet")
    tour.press("link")
    tour.press("link")

    editor = field(page, "Text")
    editor.click()
    page.keyboard.press("Control+Home")
    page.keyboard.type(f"{LINE}\n")
    expect(page.locator("#studio-preview .dr-stretch.is-edited", has_text=LINE)).to_be_visible()
    tour.picture("studio")
    tour.press("button", begins=True)

    expect(page.get_by_role("main")).to_contain_text(
        re.compile(r"Changes 1 prompt of 1 agent", re.IGNORECASE)
    )
    save = page.get_by_role("button", name=re.compile("^Save"))
    expect(save).to_have_class(re.compile("btn-error"))
    tour.picture("review")
    tour.press("button", begins=True)
    expect(page.get_by_role("status").filter(has_text="saved")).to_be_visible()

    tour.press("link", "navigation")
    tour.press("link")
    field(page, "Password").wait_for()
    page.wait_for_load_state()
    assert not complaints(page)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    tour.press("button")
    field(page, "Name").fill("Tour")
    tour.press("checkbox", begins=True)
    tour.press("checkbox", begins=True)
    tour.press("button")
    tour.picture("key")
    told = [page.locator(f"#line-{name}").inner_text() for name in ("shell", "curl")]
    assert next(tour.words, None) is None

    commands = re.sub(r"https?://[^/\"]+", live_server.url, "\n".join(told))
    assert LINE in shell(commands, {"PATH": f"{curl_beside(tmp_path)}:{os.environ['PATH']}"})
    # Whatever the demo has to show is here, and so is someone who may see it.
    look_at(page, telling_pages(demo))


def shell(commands: str, env: dict[str, str]) -> str:
    done = subprocess.run(  # what the page itself tells one to run
        ["bash", "-c", commands], capture_output=True, text=True, timeout=30, env=env, check=True
    )
    return done.stdout

"""The tour in the documentation, executed as written: each control in bold is pressed, in that order."""

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
from tests.browser.page_checks import axe_violations
from tests.browser.test_accessibility import check_pages, representative_pages
from tests.browser.users import field
from tests.curl import curl_beside

DOCS = Path(__file__).resolve().parents[2] / "docs"
TOUR = (DOCS / "tour.md").read_text()
[NEW_LINE] = re.findall(r"^```text\n(.*)\n```$", TOUR, re.MULTILINE)
# Directory for new screenshots of the tour: TOUR_PICTURES=docs/img.
PICTURES = os.environ.get("TOUR_PICTURES", "")
# Lines of the demo's prompts that come from stored data, capabilities and documentation.
DEMO_LINES = {
    "field-research": ("ctx/stations", "(3 items)", "[Hidden]", "Return format: {answer :string"),
    "night-shift": ("<Storage>", "</Storage>"),
    "release-captain": ("Pi documentation (read only when", "- Main documentation: docs/README.md"),
}
PASSWORD = "under-the-larkfell"  # the demo prints it


class Tour:
    """Presses the controls that the tour names in bold."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.button_names: Iterator[str] = iter(re.findall(r"\*\*(.+?)\*\*", TOUR))

    def press(self, role: Any, inside: str = "main", *, begins: bool = False) -> None:
        name = next(self.button_names)
        self.page.wait_for_load_state()
        container: Locator = self.page.locator("body") if not inside else self.page.get_by_role(inside)  # type: ignore[arg-type]
        pattern = re.compile(rf"^{re.escape(name)}") if begins else name
        container.get_by_role(role, name=pattern, exact=not begins).first.click()

    def open_group(self) -> None:
        self.page.wait_for_load_state()
        self.page.locator("#dr-sidebar summary", has_text=next(self.button_names)).click()

    def picture(self, name: str) -> None:
        if PICTURES:
            self.page.wait_for_load_state("networkidle")
            self.page.screenshot(path=f"{PICTURES}/tour-{name}.png")


@pytest.fixture
def tour(demo: Workspace, visitor: Visitor) -> Tour:
    return Tour(visitor(viewport={"width": 1440, "height": 900}))


def test_the_tour_leads_from_sign_in_to_a_served_change_and_the_demo_is_accessible(
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

    # The editor replaces its textarea while the page loads; a click that found the textarea would only wait.
    editor = field(page, "Text").and_(page.locator("[contenteditable]"))
    editor.click()
    page.keyboard.press("Control+Home")
    page.keyboard.type(f"{NEW_LINE}\n")
    expect(page.locator("#studio-preview .dr-stretch.is-edited", has_text=NEW_LINE)).to_be_visible()
    tour.picture("studio")
    tour.press("button", begins=True)

    expect(page.get_by_role("main")).to_contain_text(
        re.compile(r"Changes 1 prompt for 1 agent", re.IGNORECASE)
    )
    save = page.get_by_role("button", name=re.compile("^Save"))
    expect(save).to_have_class(re.compile("btn-error"))
    tour.picture("review")
    tour.press("button", begins=True)
    expect(page.get_by_role("status").filter(has_text="saved")).to_be_visible()

    tour.open_group()
    tour.press("link", "navigation")
    tour.press("link")
    field(page, "Password").wait_for()
    page.wait_for_load_state()
    assert not axe_violations(page)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    tour.press("button")
    field(page, "Name").fill("Tour")
    tour.press("checkbox", begins=True)
    tour.press("button")
    tour.picture("key")
    blocks = [page.locator(f"#line-{name}").inner_text() for name in ("shell", "curl")]
    assert next(tour.button_names, None) is None

    commands = re.sub(r"https?://[^/\"]+", live_server.url, "\n".join(blocks))
    assert NEW_LINE in shell(commands, {"PATH": f"{curl_beside(tmp_path)}:{os.environ['PATH']}"})
    # The demo is loaded and its owner signed in, so its pages are checked here too.
    for agent, lines in DEMO_LINES.items():
        page.goto(f"/w/{demo.slug}/studio/{agent}/")
        for line in lines:
            expect(page.locator("#studio-preview")).to_contain_text(line)
    check_pages(page, representative_pages(demo))


def shell(commands: str, env: dict[str, str]) -> str:
    process = subprocess.run(  # the commands that the page shows
        ["bash", "-c", commands], capture_output=True, text=True, timeout=30, env=env, check=True
    )
    return process.stdout

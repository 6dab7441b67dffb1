"""Every screen of the product: Lighthouse gives its accessibility 100 of 100, axe finds nothing.

All screens take a quarter of an hour, so a run audits every twelfth, chosen by the seed of pytest-randomly.
`EVERY_SCREEN=1` audits all, `EVERY_SCREEN=toast,fleet` the screens with these names.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import Browser, Page, Playwright

from personas.models import User, Workspace
from screens.sample_data import add_sample_data
from screens.screen_list import SCREENS
from screens.server import free_port
from screens.session import Screen, Session
from tests.browser.lighthouse import Lighthouse, install_lighthouse, run_lighthouse
from tests.browser.page_checks import axe_violations
from tests.factories import signed_in
from tests.isolation.turns import turn_of_this_run

pytestmark = [pytest.mark.hard, pytest.mark.slow]

EMAILS = {"owner": "alice@example.com", "viewer": "jory@example.com"}
SIZES = ((1440, 900), (390, 844))
# Without the print pictures, which show the same pages.
AUDITED = [screen for screen in SCREENS if screen.media == "screen"]
SHARE = 12


def choose_screens(choice: str) -> list[Screen]:
    """Return all screens, those with the given names, or without a choice the share of this run."""
    if not choice:
        return AUDITED[turn_of_this_run() % SHARE :: SHARE]
    names = [] if choice == "1" else choice.split(",")
    chosen = [screen for screen in AUDITED if not names or screen.name in names]
    unknown = set(names) - {screen.name for screen in chosen}
    assert not unknown, f"no screen is named {', '.join(sorted(unknown))}"
    return chosen


@dataclass
class Auditor:
    """A browser for the pages of one workspace, and Lighthouse beside it."""

    browser: Browser
    address: str
    slug: str
    lighthouse: Lighthouse

    def open_sessions(self) -> Iterator[tuple[Session, list[Screen]]]:
        """Yield a session for each role, with the screens of the role that are audited in this run."""
        audited = choose_screens(os.environ.get("EVERY_SCREEN", ""))
        for role in dict.fromkeys(screen.role for screen in audited):
            with self.open_session(role) as session:
                yield session, [one for one in audited if one.role == role]

    @contextmanager
    def open_session(self, role: str) -> Iterator[Session]:
        context = self.browser.new_context(base_url=self.address, reduced_motion="reduce")
        context.set_default_timeout(20_000)
        if role in EMAILS:
            client = signed_in(User.objects.get(email=EMAILS[role]))
            cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
            context.add_cookies(
                [{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": self.address}]
            )
        yield Session(context.new_page(), self.slug)
        context.close()

    def check(self, session: Session, screen: Screen) -> list[str]:
        """Open a screen and return its problems: at both sizes for Lighthouse, in both themes for axe."""
        problems = []
        session.slug = screen.slug or self.slug
        page = session.page
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            url = screen.url if isinstance(screen.url, str) else screen.url(session)
            response = session.go(url)
            assert response is not None
            assert response.status == screen.status, f"{screen.name}: {url} answered {response.status}"
            if screen.action:
                screen.action(page)
            problems += [f"{screen.name} at {width} px: {line}" for line in self.audit(page)]
        return problems + [f"{screen.name}: {line}" for line in axe_violations(page)]

    def audit(self, page: Page) -> list[str]:
        answer = self.lighthouse.audit(page)
        return [] if answer["score"] == 100 else [f"Lighthouse {answer['score']}", *answer["failed"]]


@pytest.fixture
def auditor(
    live_server: Any, playwright: Playwright, browser_type_launch_args: dict[str, Any], tmp_path: Path
) -> Iterator[Auditor]:
    """An auditor of the workspace whose slug the test sets."""
    install_lighthouse(tmp_path / "tools")
    port = free_port()
    arguments = [*browser_type_launch_args["args"], f"--remote-debugging-port={port}"]
    browser = playwright.chromium.launch(**{**browser_type_launch_args, "args": arguments})
    with run_lighthouse(tmp_path / "tools", port) as lighthouse:
        yield Auditor(browser, live_server.url, "", lighthouse)
    browser.close()


def test_every_screen_is_accessible(demo: Workspace, auditor: Auditor):
    auditor.slug = add_sample_data(auditor.address)
    problems = []
    for session, screens in auditor.open_sessions():
        for screen in screens:
            problems += auditor.check(session, screen)
    assert not problems, "\n".join(problems)


SMALL_TARGETS = """() => {
  const row = document.createElement("div");
  for (const name of ["one", "two", "three"]) {
    const button = document.createElement("button");
    button.ariaLabel = name;
    const style = { display: "inline-block", width: "8px", height: "8px", minHeight: "0", padding: "0" };
    Object.assign(button.style, style);
    row.append(button);
  }
  document.querySelector("main").append(row);
}"""


@pytest.mark.planted
def test_small_targets_are_found(workspace: Workspace, auditor: Auditor):
    """In a workspace without data: the demo takes longer than the audit."""
    auditor.slug = workspace.slug
    with auditor.open_session("owner") as session:
        session.go("inbox/")
        session.page.evaluate(SMALL_TARGETS)
        assert any("target-size" in line for line in auditor.audit(session.page))

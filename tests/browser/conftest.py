"""Chromium against a live server; every page is checked for errors, policy violations and foreign hosts."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import cache
from django.db import connections
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright
from pytest_django.live_server_helper import LiveServer

from personas.models import User, Workspace
from prompts.studio.demo.load import load_demo
from tests.browser.page_checks import RunSeed
from tests.browser.page_errors import PageErrors
from tests.browser.static_files import CachedStaticFiles
from tests.browser.users import Visit
from tests.browser.windows import PATIENCE_MS, Window, Windows
from tests.factories import signed_in

__all__ = ["PageErrors", "Visitor"]

Visitor = Callable[..., Page]


@pytest.fixture
def page_errors() -> Iterator[PageErrors]:
    """Collect browser errors, and fail the test afterwards if there are any."""
    page_errors = PageErrors()
    yield page_errors
    assert not page_errors.messages, "\n".join(page_errors.messages)


@pytest.fixture(autouse=True)
def fresh_limits(transactional_db: None) -> None:
    """Clear the cache, which holds the sign-in rate limits and is not emptied between tests."""
    cache.clear()


@pytest.fixture(scope="session", autouse=True)
def run_seed(pytestconfig: pytest.Config) -> None:
    """Let the run's seed choose the pages that are checked with axe."""
    RunSeed.value = int(pytestconfig.getoption("randomly_seed", 0) or 0)


@pytest.fixture(scope="session")
def live_server(request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    """Like pytest-django's live server, but the browser caches static files."""
    server = LiveServer("localhost", start=False)
    server.thread.static_handler = CachedStaticFiles
    server.start()
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def public_url(live_server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the links in emails lead to the server of the tests."""
    monkeypatch.setattr(settings, "PUBLIC_URL", live_server.url)


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    """Like pytest-playwright's, but stopped after the last browser test: other tests need no event loop."""
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        yield playwright
        # The thread has other connections while the event loop runs; later nothing could close them.
        connections.close_all()


@pytest.fixture(scope="package")
def browser(playwright: Playwright, browser_type_launch_args: dict[str, Any]) -> Iterator[Browser]:
    browser = playwright.chromium.launch(**browser_type_launch_args)
    yield browser
    browser.close()


@pytest.fixture(scope="package")
def windows(browser: Browser, live_server: LiveServer) -> Windows:
    return Windows(browser, live_server.url)


@pytest.fixture
def open_window(windows: Windows, page_errors: PageErrors) -> Iterator[Callable[..., Window]]:
    """Open windows at the live server's address; they are released when the test has ended."""
    windows_in_use: list[Window] = []

    def open_one(**options: Any) -> Window:
        windows_in_use.append(windows.open(page_errors, **options))
        return windows_in_use[-1]

    yield open_one
    while windows_in_use:
        windows.release(windows_in_use.pop())


@pytest.fixture
def visitor(open_window: Callable[..., Window]) -> Visitor:
    """Open a page without a session."""
    return lambda **options: open_window(**options).page


@pytest.fixture
def logged_in_page(open_window: Callable[..., Window], live_server: LiveServer) -> Visitor:
    """Open a page in which this user has just signed in."""

    def open_page(user: User, **options: Any) -> Page:
        window = open_window(**options)
        client = signed_in(user)
        key = client.cookies[settings.SESSION_COOKIE_NAME].value
        window.context.add_cookies(
            [{"name": settings.SESSION_COOKIE_NAME, "value": key, "url": live_server.url}]
        )
        return window.page

    return open_page


@pytest.fixture
def bobs(logged_in_page: Visitor, bob: User, workspace: Workspace) -> Visit:
    """Bob, an editor, in Alice's workspace."""
    return Visit(logged_in_page(bob), workspace.slug)


@pytest.fixture
def alices(logged_in_page: Visitor, alice: User, workspace: Workspace) -> Visit:
    """Alice in the workspace she owns."""
    return Visit(logged_in_page(alice), workspace.slug)


@pytest.fixture
def demo(transactional_db: None) -> Workspace:
    return load_demo()


@pytest.fixture
def demo_page(demo: Workspace, logged_in_page: Visitor) -> Visitor:
    """Open a page as the demo's owner."""
    owner = User.objects.get(memberships__workspace=demo, memberships__role="owner")
    return lambda **options: logged_in_page(owner, **options)

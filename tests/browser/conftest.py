"""Real Chromium before a real server; every page is watched for errors, policy breaches and foreign hosts."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import cache
from playwright.sync_api import Browser, Page
from pytest_django.live_server_helper import LiveServer

from personas.models import User, Workspace
from prompts.demo.load import load_demo
from tests.browser.people import Visit
from tests.browser.serving import KeptFiles
from tests.browser.watching import Watch
from tests.browser.windows import Window, Windows
from tests.factories import signed_in

__all__ = ["Visitor", "Watch"]

Visitor = Callable[..., Page]


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Fails the test afterwards, so that no test has to remember to ask."""
    watch = Watch()
    yield watch
    assert not watch.complaints, "\n".join(watch.complaints)


@pytest.fixture(autouse=True)
def fresh_limits(transactional_db: None) -> None:
    """Log-in limits live in the cache, whose table is not emptied between tests."""
    cache.clear()


@pytest.fixture(scope="session")
def live_server(request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    """As pytest-django's, but files are kept by the browser."""
    server = LiveServer("localhost", start=False)
    server.thread.static_handler = KeptFiles
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def windows(browser: Browser, live_server: LiveServer) -> Windows:
    return Windows(browser, live_server.url)


@pytest.fixture
def open_window(windows: Windows, watch: Watch) -> Iterator[Callable[..., Window]]:
    """Windows at the live server's address; each is given back when the test has ended."""
    opened: list[Window] = []

    def open_one(**options: Any) -> Window:
        opened.append(windows.open(watch, **options))
        return opened[-1]

    yield open_one
    while opened:
        windows.put_back(opened.pop())


@pytest.fixture
def visitor(open_window: Callable[..., Window]) -> Visitor:
    """A browser in which nobody is signed in."""
    return lambda **options: open_window(**options).page


@pytest.fixture
def logged_in_page(open_window: Callable[..., Window], live_server: LiveServer) -> Visitor:
    """A browser in which this person has just signed in."""

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
    """The demo's owner, looking at it."""
    owner = User.objects.get(memberships__workspace=demo, memberships__role="owner")
    return lambda **options: logged_in_page(owner, **options)

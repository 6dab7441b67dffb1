"""Real Chromium before a real server; every page is watched for errors, policy breaches and foreign hosts."""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.core.cache import cache
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request, Response

from personas.models import User, Workspace
from prompts.demo.load import load_demo
from tests.browser.people import Visit
from tests.factories import signed_in

HOME = {"127.0.0.1", "localhost"}
Visitor = Callable[..., Page]


class Watch:
    """Notes whatever a person with open developer tools would frown at."""

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self.refused: set[str] = set()

    def over(self, context: BrowserContext) -> None:
        context.on("console", self.hear)
        context.on("weberror", lambda error: self.complaints.append(f"script error: {error.error}"))
        context.on("request", self.see)
        context.on("response", self.note_refusal)
        # Chromium reports some breaches of the policy to the page only.
        context.add_init_script(
            "addEventListener('securitypolicyviolation', e => "
            "console.error('policy: ' + e.violatedDirective + ' ' + e.blockedURI))"
        )

    def hear(self, message: ConsoleMessage) -> None:
        # A form or page that is refused on purpose makes Chromium mention the status of the page itself.
        expected = message.text.startswith("Failed to load resource") and self.is_refused(message)
        if message.type == "error" and not expected:
            self.complaints.append(f"console: {message.text} ({message.location['url']})")

    def is_refused(self, message: ConsoleMessage) -> bool:
        return message.location["url"] in self.refused

    def see(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme not in {"data", "blob"} and address.hostname not in HOME:
            self.complaints.append(f"foreign host: {request.url}")

    def note_refusal(self, response: Response) -> None:
        if 400 <= response.status < 500 and response.request.is_navigation_request():
            self.refused.add(response.url)


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


@pytest.fixture
def new_context(
    new_context: Callable[..., BrowserContext], live_server: Any, watch: Watch
) -> Callable[..., BrowserContext]:
    """Contexts at the live server's address; nothing moves, so colours are final when they are read."""

    def make(**options: Any) -> BrowserContext:
        said = {"base_url": live_server.url, "reduced_motion": "reduce"} | options
        context = new_context(**said)
        context.set_default_timeout(6_000)
        # The first page of a process pays for all that is read once.
        context.set_default_navigation_timeout(20_000)
        watch.over(context)
        return context

    return make


@pytest.fixture
def visitor(new_context: Callable[..., BrowserContext]) -> Visitor:
    """A browser in which nobody is signed in."""
    return lambda **options: new_context(**options).new_page()


@pytest.fixture
def logged_in_page(new_context: Callable[..., BrowserContext], live_server: Any) -> Visitor:
    """A browser in which this person has just signed in."""

    def open_page(user: User, **options: Any) -> Page:
        context = new_context(**options)
        client = signed_in(user)
        key = client.cookies[settings.SESSION_COOKIE_NAME].value
        context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": key, "url": live_server.url}])
        return context.new_page()

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

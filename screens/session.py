"""A browser session for screenshots, and the description of a screen."""

from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Response

TIMEOUT_MS = 30_000


@dataclass
class Session:
    """One user's browser page in one workspace, with the errors it logged."""

    page: Page
    slug: str
    messages: list[str] = field(default_factory=list)

    def record_errors(self, context: BrowserContext) -> None:
        context.on("console", self.add_console_message)
        context.on("weberror", lambda error: self.messages.append(f"script error: {error.error}"))

    def add_console_message(self, message: ConsoleMessage) -> None:
        # Chromium also logs the error status of the page itself, which is checked separately.
        is_own = message.location["url"] == self.page.url
        if message.type == "error" and not (is_own and message.text.startswith("Failed to load")):
            self.messages.append(f"console: {message.text} ({message.location['url']})")

    def go(self, path: str) -> Response | None:
        """Open a path, relative to the workspace unless it starts with a slash."""
        return self.page.goto(path if path.startswith("/") else f"/w/{self.slug}/{path}")

    def first_link(self, path: str, link: str) -> str:
        """Return the URL of the first such link on a page; empty if there is none."""
        self.go(path)
        links = self.page.locator(link)
        href = links.first.get_attribute("href") if links.count() else ""
        return urlsplit(href or "")._replace(scheme="", netloc="").geturl()


ScreenUrl = str | Callable[[Session], str]
Action = Callable[[Page], None]


@dataclass(frozen=True)
class Screen:
    """A screen: its name, its URL, the user's role, and the action before the screenshot."""

    name: str
    url: ScreenUrl
    role: str = "owner"
    action: Action | None = None
    # Expected response status.
    status: int = 200
    # Another workspace than the demo's.
    slug: str = ""
    media: str = "screen"
    # The full page, or only the viewport.
    is_full_page: bool = True


def first_link_on(
    path: str, link: str = "main tbody th a[href], main .dr-row-link, main .dr-card-link"
) -> ScreenUrl:
    """Return a function that finds the first record of a list."""
    return lambda session: session.first_link(path, link)

"""A walk through the product: who looks, where a screen is found, what is noticed on the way."""

from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Response

PATIENCE = 30_000


@dataclass
class Tour:
    """One person's browser inside one workspace."""

    page: Page
    slug: str
    complaints: list[str] = field(default_factory=list)

    def watch(self, context: BrowserContext) -> None:
        context.on("console", self.hear)
        context.on("weberror", lambda error: self.complaints.append(f"script error: {error.error}"))

    def hear(self, message: ConsoleMessage) -> None:
        # Chromium also mentions the status of the page itself, which the walk judges.
        is_own = message.location["url"] == self.page.url
        if message.type == "error" and not (is_own and message.text.startswith("Failed to load")):
            self.complaints.append(f"console: {message.text} ({message.location['url']})")

    def go(self, path: str) -> Response | None:
        """From the workspace, unless the path begins with a slash."""
        return self.page.goto(path if path.startswith("/") else f"/w/{self.slug}/{path}")

    def first(self, path: str, link: str) -> str:
        """The address of the first such link on a page; empty if the page has none."""
        self.go(path)
        found = self.page.locator(link)
        href = found.first.get_attribute("href") if found.count() else ""
        return urlsplit(href or "")._replace(scheme="", netloc="").geturl()


Where = str | Callable[[Tour], str]
Act = Callable[[Page], None]


@dataclass(frozen=True)
class Screen:
    """A screen: its name, where it is, whose eyes see it, and what is done there before the picture."""

    name: str
    where: Where
    role: str = "owner"
    act: Act | None = None
    # What the page must answer.
    status: int = 200
    # Another workspace than the demo's.
    slug: str = ""
    media: str = "screen"
    # From top to bottom, or only what fits on the screen.
    is_whole: bool = True


def link_on(path: str, link: str = "main tbody th a[href], main .dr-row-link, main .dr-card-link") -> Where:
    """The first record that a list shows."""
    return lambda tour: tour.first(path, link)

"""Requests of a page that are held until the test answers them."""

from urllib.parse import unquote_plus

from playwright.sync_api import Page, Request, Route

from tests.browser.windows import PATIENCE_MS

PAUSE_MS = 50


class HeldRequests:
    """Holds requests to an address. A page can look busy before its request arrives here, so `next` waits."""

    def __init__(self, page: Page, address: str) -> None:
        self.page, self.address, self.routes = page, address, list[Route]()
        page.route(address, self.hold)

    def hold(self, route: Route) -> None:
        self.routes.append(route)

    def next(self, text: str = "") -> Route:
        """Return the newest held request, as soon as there is one; with a text, one that sends it."""
        self.wait(text)
        return self.routes.pop()

    def wait(self, text: str = "") -> None:
        """Wait until the newest held request sends this text; while it is typed, others may be sent."""
        for _ in range(PATIENCE_MS // PAUSE_MS):
            if self.routes and self.is_awaited(self.routes[-1].request, text):
                return
            self.page.wait_for_timeout(PAUSE_MS)
        raise AssertionError(f"No request to {self.address} was sent.")

    def is_awaited(self, request: Request, text: str) -> bool:
        return text in unquote_plus(request.post_data or "")

    def stop(self) -> None:
        """Hold no further request."""
        self.page.unroute(self.address)

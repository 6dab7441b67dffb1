"""Requests of a page that are held until the test answers them."""

from playwright.sync_api import Page, Route


class HeldRequests:
    """Holds requests to an address. A page can look busy before its request arrives here, so `next` waits."""

    def __init__(self, page: Page, address: str) -> None:
        self.page, self.address, self.routes = page, address, list[Route]()
        page.route(address, self.hold)

    def hold(self, route: Route) -> None:
        self.routes.append(route)

    def next(self) -> Route:
        """Return the newest held request, as soon as there is one."""
        self.wait()
        return self.routes.pop()

    def wait(self) -> None:
        for _ in range(200):
            if self.routes:
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"No request to {self.address} was sent.")

    def stop(self) -> None:
        """Hold no further request."""
        self.page.unroute(self.address)

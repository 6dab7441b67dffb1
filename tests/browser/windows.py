"""Browser windows reused between tests: a cleared window saves starting a renderer and loading files."""

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Error, Page, ViewportSize

from tests.browser.page_errors import REPORT_POLICY_VIOLATIONS, PageErrors
from tests.browser.static_files import IS_SLOW, SCRIPT_SLOWDOWN

SIZE: ViewportSize = {"width": 1280, "height": 720}
# Same origin, so that the renderer is kept and the origin's storage can be cleared from there.
BLANK_PAGE = "/static/favicon.svg"
# Enough for a busy machine: a longer limit delays a failure, but never a success.
PATIENCE_MS = 20_000
CLEAR_STORAGE = "() => { localStorage.clear(); sessionStorage.clear() }"


class Window:
    """A page in its own browser context; cleared before it is reused."""

    is_reusable = True

    def __init__(self, browser: Browser, address: str, options: dict[str, Any]) -> None:
        self.options = options
        # No animations, so that colours are final when they are read.
        context_options = {"base_url": address, "reduced_motion": "reduce", "viewport": SIZE} | options
        self.context: BrowserContext = browser.new_context(**context_options)
        self.context.set_default_timeout(PATIENCE_MS)
        self.page_errors = PageErrors()
        self.page = self.new_page()
        self.record_errors()

    def record_errors(self) -> None:
        """Pass browser events to the error log of the test that has this window open."""
        for event in ("console", "weberror", "request", "response"):
            self.context.on(event, lambda item, event=event: self.page_errors.add(event, item))
        self.context.add_init_script(REPORT_POLICY_VIOLATIONS)

    def new_page(self) -> Page:
        """Open a page that tracks its event listeners, so that they can be removed."""
        page: Any = self.context.new_page()
        if IS_SLOW:
            devtools = self.context.new_cdp_session(page)
            devtools.send("Emulation.setCPUThrottlingRate", {"rate": SCRIPT_SLOWDOWN})
        self.listeners: list[tuple[str, Callable[..., Any]]] = []
        for method in ("on", "once"):
            setattr(page, method, self.track_listeners(getattr(page, method)))
        tracked_page: Page = page
        return tracked_page

    def track_listeners(self, listen: Callable[..., None]) -> Callable[..., None]:
        def add_listener(event: str, listener: Callable[..., Any]) -> None:
            self.listeners.append((event, listener))
            listen(event, listener)

        return add_listener

    def clear(self) -> None:
        """Remove the session, storage, listeners, routes and media settings of the last test."""
        for page in self.context.pages:
            if page is not self.page:
                page.close()
        if self.page.is_closed():
            self.page = self.new_page()
        while self.listeners:
            self.page.remove_listener(*self.listeners.pop())
        self.page.unroute_all(behavior="ignoreErrors")
        self.page.goto(BLANK_PAGE)
        self.page.evaluate(CLEAR_STORAGE)
        self.page.emulate_media(media="null", color_scheme="null")
        if self.page.viewport_size != SIZE:
            self.page.set_viewport_size(SIZE)
        self.context.clear_cookies()
        self.context.clear_permissions()


class Windows:
    """Pool of windows per process; a new one is created only if no free window has the same options."""

    def __init__(self, browser: Browser, address: str) -> None:
        self.browser, self.address = browser, address
        self.free: list[Window] = []

    def open(
        self, page_errors: PageErrors, *, viewport: ViewportSize = SIZE, alone: bool = False, **options: Any
    ) -> Window:
        """Return a free or new window; with `alone`, for changes that cannot be undone, a new one."""
        matching = [window for window in self.free if window.options == options and not alone]
        if matching:
            window = matching[-1]
            self.free.remove(window)
        else:
            window = Window(self.browser, self.address, options)
            window.is_reusable = not alone
        window.page_errors = page_errors
        if viewport != SIZE:
            window.page.set_viewport_size(viewport)
        return window

    def release(self, window: Window) -> None:
        """Clear the window and return it to the pool; close it if it cannot be cleared."""
        try:
            window.clear()
        except Error:
            window.is_reusable = False
        if window.is_reusable:
            self.free.append(window)
        else:
            window.context.close()

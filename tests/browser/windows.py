"""Windows that outlive their test: emptied of all it left, one spares the next a renderer and its files."""

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Error, Page, ViewportSize

from tests.browser.watching import TELL_OF_BREACHES, Watch

SIZE: ViewportSize = {"width": 1280, "height": 720}
# Of the same origin, so that the renderer stays and what the origin has stored can be reached from there.
NOWHERE = "/static/favicon.svg"
FORGET = "() => { localStorage.clear(); sessionStorage.clear() }"


class Window:
    """A page in a context of its own, as new whenever it is opened."""

    lasts = True

    def __init__(self, browser: Browser, address: str, options: dict[str, Any]) -> None:
        self.options = options
        # Nothing moves, so colours are final when they are read.
        said = {"base_url": address, "reduced_motion": "reduce", "viewport": SIZE} | options
        self.context: BrowserContext = browser.new_context(**said)
        self.context.set_default_timeout(6_000)
        # The first page of a process pays for all that is read once.
        self.context.set_default_navigation_timeout(20_000)
        self.watch = Watch()
        self.page = self.new_page()
        self.be_watched()

    def be_watched(self) -> None:
        """By whoever watches the test that has it open."""
        for event in ("console", "weberror", "request", "response"):
            self.context.on(event, lambda seen, event=event: self.watch.note(event, seen))
        self.context.add_init_script(TELL_OF_BREACHES)

    def new_page(self) -> Page:
        """A page of which we know who listens to it."""
        page: Any = self.context.new_page()
        self.listeners: list[tuple[str, Callable[..., Any]]] = []
        for verb in ("on", "once"):
            setattr(page, verb, self.noted(getattr(page, verb)))
        shown: Page = page
        return shown

    def noted(self, listen: Callable[..., None]) -> Callable[..., None]:
        def note(event: str, listener: Callable[..., Any]) -> None:
            self.listeners.append((event, listener))
            listen(event, listener)

        return note

    def clear(self) -> None:
        """Forget the people, the texts, the listeners and the light of the test that has ended."""
        for page in self.context.pages:
            if page is not self.page:
                page.close()
        if self.page.is_closed():
            self.page = self.new_page()
        while self.listeners:
            self.page.remove_listener(*self.listeners.pop())
        self.page.unroute_all(behavior="ignoreErrors")
        self.page.goto(NOWHERE)
        self.page.evaluate(FORGET)
        self.page.emulate_media(media="null", color_scheme="null")
        if self.page.viewport_size != SIZE:
            self.page.set_viewport_size(SIZE)
        self.context.clear_cookies()
        self.context.clear_permissions()


class Windows:
    """All windows of a process; a new one is made only where none like it is free."""

    def __init__(self, browser: Browser, address: str) -> None:
        self.browser, self.address = browser, address
        self.free: list[Window] = []

    def open(
        self, watch: Watch, *, viewport: ViewportSize = SIZE, alone: bool = False, **options: Any
    ) -> Window:
        """Whoever does to a window what cannot be taken back asks for one `alone`."""
        alike = [window for window in self.free if window.options == options and not alone]
        if alike:
            window = alike[-1]
            self.free.remove(window)
        else:
            window = Window(self.browser, self.address, options)
            window.lasts = not alone
        window.watch = watch
        if viewport != SIZE:
            window.page.set_viewport_size(viewport)
        return window

    def put_back(self, window: Window) -> None:
        """Only a window that could be emptied is used again."""
        try:
            window.clear()
        except Error:
            window.lasts = False
        if window.lasts:
            self.free.append(window)
        else:
            window.context.close()

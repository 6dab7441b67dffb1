"""Fleet and Studio in Chromium: how long until they can be used, and until typed words are drawn."""

import json
import sys
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from playwright.sync_api import Browser, Error, Page, sync_playwright

from tests.pytest_servers import launch_arguments

VISITS, PAUSES = 7, 15
MOST_MS, MOST_PREVIEW_MS = 1_000.0, 300.0
# Scripts are deferred: when this event is over, they have run.
READY = (
    "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd > 0"
    " && document.querySelector('main a, main button') !== null"
)
EDITOR, PREVIEW = ".dr-editor", "studio-preview"
# The editor lives in a tree of its own.
STUDIO_READY = (
    f"{READY} && document.querySelector('{EDITOR}')?.shadowRoot?.querySelector('.cm-content')"
    f" && document.getElementById('{PREVIEW}')?.textContent.trim()"
)
# Noted inside the page, so that no way between two processes is in the time.
NOTE_DRAWN = f"""() => {{
  const note = () => requestAnimationFrame(() => (window.drawnAt = performance.now()));
  document.addEventListener("htmx:afterSwap", (event) => event.detail.target?.id === "{PREVIEW}" && note());
  document.addEventListener("keydown", () => (window.typedAt = performance.now()), true);
}}"""
DRAWN = (
    "typed => window.drawnAt > window.typedAt && window.typedAt > typed && window.drawnAt - window.typedAt"
)


def main(told: dict[str, Any]) -> int:
    base = f"http://localhost:{told['port']}"
    work = f"{base}/w/{told['workspace']}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**launch_arguments(headed=False))  # type: ignore[arg-type]  # as it says
        try:
            visitor = Visitor(browser, base, told["cookie"], told["session"])
            met = [
                said("fleet can be used after", visitor.visits(f"{work}/", READY), MOST_MS),
                said("studio can be used after", visitor.visits(studio(work, told), STUDIO_READY), MOST_MS),
                said("a preview is drawn after", visitor.previews(studio(work, told)), MOST_PREVIEW_MS),
            ]
        finally:
            browser.close()
    return 0 if all(met) else 1


def studio(work: str, told: dict[str, Any]) -> str:
    return f"{work}/studio/{told['agent']}/?part={told['part']}"


class Visitor:
    """Somebody signed in, who comes each time with an empty cache."""

    def __init__(self, browser: Browser, base: str, cookie: str, session: str) -> None:
        self.browser, self.base = browser, base
        self.cookie = {"name": cookie, "value": session, "url": base}

    def page(self) -> Page:
        context = self.browser.new_context(viewport={"width": 1440, "height": 900})
        context.add_cookies([self.cookie])  # type: ignore[list-item]  # a cookie as Playwright has them
        page = context.new_page()
        page.set_default_timeout(15_000)
        return page

    def visits(self, url: str, ready: str) -> list[float]:
        """Milliseconds from the start of the navigation; the first visit warms the server up."""
        return found(lambda: [self.visit(url, ready) for _ in range(VISITS + 1)][1:])

    def visit(self, url: str, ready: str) -> float:
        page = self.page()
        self.open(page, url)
        took = page.wait_for_function(f"() => {ready} && performance.now()").json_value()
        page.context.close()
        return float(took)

    def open(self, page: Page, url: str) -> None:
        answer = page.goto(url, wait_until="commit")
        if answer is None or answer.status != 200:
            raise Error(f"{url} answered {answer.status if answer else 'nothing'}")

    def previews(self, url: str) -> list[float]:
        """From the last key to the drawn words: the pause that the page waits for is in it."""
        return found(lambda: self.typed(url))

    def typed(self, url: str) -> list[float]:
        page = self.page()
        self.open(page, url)
        page.wait_for_function(f"() => {STUDIO_READY}")
        page.evaluate(NOTE_DRAWN)
        page.locator(f"{EDITOR} .cm-content").first.click()
        page.keyboard.press("Control+End")
        times = []
        for _ in range(PAUSES + 1):
            before = page.evaluate("window.typedAt ?? 0")
            page.keyboard.type("word ", delay=20)
            times.append(float(page.wait_for_function(DRAWN, arg=before).json_value()))
        page.context.close()
        return times[1:]


def found(look: Callable[[], list[float]]) -> list[float]:
    """Nothing, where the page is not there or never becomes ready; why is told."""
    try:
        return look()
    except Error as error:
        print(f"  {error.message.splitlines()[0]}")
        return []


def said(what: str, times: Sequence[float], most: float) -> bool:
    if not times:
        print(f"{what}: MISSING")
        return False
    middle = median(times)
    verdict = "met" if middle <= most else "MISSED"
    print(f"{what} {middle:.0f} ms, at worst {max(times):.0f} ({len(times)} times), of {most:g} {verdict}")
    return middle <= most


if __name__ == "__main__":
    sys.exit(main(json.load(sys.stdin)))

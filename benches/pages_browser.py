"""Fleet and Studio in Chromium: time until they are usable, and until typed text is in the preview."""

import json
import sys
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from playwright.sync_api import Browser, Error, Page, sync_playwright

from tests.pytest_servers import launch_arguments

VISITS, PAUSES = 7, 15
MAX_MS, MAX_PREVIEW_MS = 1_000.0, 250.0
# Scripts are deferred: they have run when this event ends.
READY = (
    "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd > 0"
    " && document.querySelector('main a, main button') !== null"
)
EDITOR, PREVIEW = ".dr-editor", "studio-preview"
# The editor is in a shadow DOM.
STUDIO_READY = (
    f"{READY} && document.querySelector('{EDITOR}')?.shadowRoot?.querySelector('.cm-content')"
    f" && document.getElementById('{PREVIEW}')?.textContent.trim()"
)
# Recorded inside the page, so that the time contains no communication with the test process.
NOTE_DRAWN = f"""() => {{
  const note = () => requestAnimationFrame(() => (window.drawnAt = performance.now()));
  document.addEventListener("htmx:afterSwap", (event) => event.detail.target?.id === "{PREVIEW}" && note());
  document.addEventListener("keydown", () => (window.typedAt = performance.now()), true);
}}"""
DRAWN = (
    "typed => window.drawnAt > window.typedAt && window.typedAt > typed && window.drawnAt - window.typedAt"
)


def main(stage: dict[str, Any]) -> int:
    base = f"http://localhost:{stage['port']}"
    workspace_url = f"{base}/w/{stage['workspace']}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**launch_arguments(headed=False))  # type: ignore[arg-type]  # as it says
        try:
            visitor = Visitor(browser, base, stage["cookie"], stage["session"])
            goals_met = [
                report_goal(
                    "fleet can be used after", visitor.measure_visits(f"{workspace_url}/", READY), MAX_MS
                ),
                report_goal(
                    "studio can be used after",
                    visitor.measure_visits(build_studio_url(workspace_url, stage), STUDIO_READY),
                    MAX_MS,
                ),
                report_goal(
                    "a preview is drawn after",
                    visitor.measure_previews(build_studio_url(workspace_url, stage)),
                    MAX_PREVIEW_MS,
                ),
            ]
        finally:
            browser.close()
    return 0 if all(goals_met) else 1


def build_studio_url(workspace_url: str, stage: dict[str, Any]) -> str:
    return f"{workspace_url}/studio/{stage['agent']}/?part={stage['part']}"


class Visitor:
    """A signed-in user with an empty browser cache at each visit."""

    def __init__(self, browser: Browser, base: str, cookie: str, session: str) -> None:
        self.browser, self.base = browser, base
        self.cookie = {"name": cookie, "value": session, "url": base}

    def page(self) -> Page:
        context = self.browser.new_context(viewport={"width": 1440, "height": 900})
        context.add_cookies([self.cookie])  # type: ignore[list-item]  # a cookie as Playwright has them
        page = context.new_page()
        page.set_default_timeout(15_000)
        return page

    def measure_visits(self, url: str, ready: str) -> list[float]:
        """Return the milliseconds from the start of the navigation; the first visit warms up the server."""
        return measure_or_report(lambda: [self.measure_visit(url, ready) for _ in range(VISITS + 1)][1:])

    def measure_visit(self, url: str, ready: str) -> float:
        page = self.page()
        self.open(page, url)
        milliseconds = page.wait_for_function(f"() => {ready} && performance.now()").json_value()
        page.context.close()
        return float(milliseconds)

    def open(self, page: Page, url: str) -> None:
        response = page.goto(url, wait_until="commit")
        if response is None or response.status != 200:
            raise Error(f"{url} answered {response.status if response else 'nothing'}")

    def measure_previews(self, url: str) -> list[float]:
        """Return the milliseconds from the last key to the rendered preview, including the typing delay."""
        return measure_or_report(lambda: self.type_and_measure(url))

    def type_and_measure(self, url: str) -> list[float]:
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


def measure_or_report(measure: Callable[[], list[float]]) -> list[float]:
    """Return the measured times; print the error and return none if the page is missing or never ready."""
    try:
        return measure()
    except Error as error:
        print(f"  {error.message.splitlines()[0]}")
        return []


def report_goal(name: str, times: Sequence[float], maximum: float) -> bool:
    if not times:
        print(f"{name}: MISSING")
        return False
    middle = median(times)
    verdict = "met" if middle <= maximum else "MISSED"
    print(f"{name} {middle:.0f} ms, at worst {max(times):.0f} ({len(times)} times), of {maximum:g} {verdict}")
    return middle <= maximum


if __name__ == "__main__":
    sys.exit(main(json.load(sys.stdin)))

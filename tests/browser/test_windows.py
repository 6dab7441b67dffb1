"""Reused browser windows: no state of an earlier test is left."""

import pytest
from playwright.sync_api import Dialog, Page

from tests.browser.page_errors import PageErrors
from tests.browser.windows import SIZE, Window, Windows

pytestmark = pytest.mark.slow

STORE_STATE = (
    "() => { localStorage.setItem('a', 'b'); sessionStorage.setItem('a', 'b'); document.cookie = 'a=b' }"
)
READ_STATE = """async () => [
  localStorage.getItem('a'), sessionStorage.getItem('a'), document.cookie.includes('a=b'),
  matchMedia('(prefers-color-scheme: dark)').matches, matchMedia('print').matches,
  matchMedia('(prefers-reduced-motion)').matches,
  (await navigator.permissions.query({ name: 'clipboard-read' })).state, confirm('Well?'), innerWidth,
]"""
INITIAL_STATE = [None, None, False, False, False, True, "prompt", False, SIZE["width"]]


def leave_traces(window: Window) -> None:
    """Leave state of every kind behind: storage, cookies, media, listeners, routes, permissions, pages."""
    page = window.page
    page.goto("/accounts/login/")
    page.evaluate(STORE_STATE)
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": 390, "height": 800})
    page.on("dialog", accept)
    page.once("popup", close)
    page.route("**/accounts/login/", lambda route: route.fulfill(body="Not ours."))
    window.context.grant_permissions(["clipboard-read"])
    window.context.new_page()


def accept(dialog: Dialog) -> None:
    dialog.accept()


def close(page: Page) -> None:
    page.close()


def state_of(window: Window) -> list[object]:
    window.page.goto("/accounts/login/")
    state: list[object] = window.page.evaluate(READ_STATE)
    return state


@pytest.mark.hard
def test_a_reused_window_has_no_state(windows: Windows, page_errors: PageErrors) -> None:
    window = windows.open(page_errors)
    for _ in range(2):
        assert state_of(window) == INITIAL_STATE
        assert len(window.context.pages) == 1
        leave_traces(window)
        windows.release(window)
        assert windows.open(page_errors) is window
    window.page.close()
    windows.release(window)
    assert state_of(windows.open(page_errors)) == INITIAL_STATE
    windows.release(window)


def test_a_window_with_special_options_is_not_reused(windows: Windows, page_errors: PageErrors) -> None:
    for special in (
        windows.open(page_errors, alone=True),
        windows.open(page_errors, java_script_enabled=False),
    ):
        windows.release(special)
        plain = windows.open(page_errors)
        assert plain is not special
        windows.release(plain)


@pytest.mark.hard
@pytest.mark.planted
def test_remaining_window_state_is_detected(
    windows: Windows, page_errors: PageErrors, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = windows.open(page_errors, alone=True)
    leave_traces(window)
    monkeypatch.setattr(window, "listeners", [])
    window.clear()
    assert state_of(window) != INITIAL_STATE, "A remaining listener accepts every dialog."
    windows.release(window)

"""A window that is used again holds nothing of the test before."""

import pytest
from playwright.sync_api import Dialog, Page

from tests.browser.watching import Watch
from tests.browser.windows import SIZE, Window, Windows

REMEMBER = (
    "() => { localStorage.setItem('a', 'b'); sessionStorage.setItem('a', 'b'); document.cookie = 'a=b' }"
)
RECALL = """async () => [
  localStorage.getItem('a'), sessionStorage.getItem('a'), document.cookie.includes('a=b'),
  matchMedia('(prefers-color-scheme: dark)').matches, matchMedia('print').matches,
  matchMedia('(prefers-reduced-motion)').matches,
  (await navigator.permissions.query({ name: 'clipboard-read' })).state, confirm('Well?'), innerWidth,
]"""
AS_NEW = [None, None, False, False, False, True, "prompt", False, SIZE["width"]]


def use(window: Window) -> None:
    """Leave something of every kind behind."""
    page = window.page
    page.goto("/accounts/login/")
    page.evaluate(REMEMBER)
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": 390, "height": 800})
    page.on("dialog", agree)
    page.once("popup", forget)
    page.route("**/accounts/login/", lambda route: route.fulfill(body="Not ours."))
    window.context.grant_permissions(["clipboard-read"])
    window.context.new_page()


def agree(dialog: Dialog) -> None:
    dialog.accept()


def forget(page: Page) -> None:
    page.close()


def state_of(window: Window) -> list[object]:
    window.page.goto("/accounts/login/")
    found: list[object] = window.page.evaluate(RECALL)
    return found


@pytest.mark.hard
def test_a_window_is_as_new_when_it_is_opened_again(windows: Windows, watch: Watch) -> None:
    window = windows.open(watch)
    for _ in range(2):
        assert state_of(window) == AS_NEW
        assert len(window.context.pages) == 1
        use(window)
        windows.put_back(window)
        assert windows.open(watch) is window
    window.page.close()
    windows.put_back(window)
    assert state_of(windows.open(watch)) == AS_NEW
    windows.put_back(window)


def test_a_window_for_something_special_is_not_given_to_others(windows: Windows, watch: Watch) -> None:
    for special in (windows.open(watch, alone=True), windows.open(watch, java_script_enabled=False)):
        windows.put_back(special)
        plain = windows.open(watch)
        assert plain is not special
        windows.put_back(plain)


@pytest.mark.hard
@pytest.mark.planted
def test_what_a_window_keeps_would_be_noticed(
    windows: Windows, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = windows.open(watch, alone=True)
    use(window)
    monkeypatch.setattr(window, "listeners", [])
    window.clear()
    assert state_of(window) != AS_NEW, "A listener that stays says yes to every question."
    windows.put_back(window)

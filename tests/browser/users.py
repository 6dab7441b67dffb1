"""User actions on a page: open a URL, fill in a field by its label, press a button.

An action that opens another page waits until that page has loaded: before that, scripts do not handle keys
and clicks, and a page that has just been requested may have no elements.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Locator, Page, expect


@dataclass
class Visit:
    """A user's browser page, usually inside one workspace."""

    page: Page
    slug: str = ""

    def go(self, path: str = "") -> int:
        """Open a path and return the status; relative to the workspace unless it starts with a slash."""
        response = self.page.goto(path if path.startswith(("/", "http")) else f"/w/{self.slug}/{path}")
        assert response is not None
        return response.status

    def fill(self, **values: str) -> None:
        for label, value in values.items():
            set_value(field(self.page, label), value)

    def press(self, name: str) -> int:
        """Press a submit button, wait for the next page and return its status."""
        self.page.wait_for_load_state()
        button = self.page.get_by_role("main").get_by_role("button", name=name, exact=True)
        asks = button.evaluate("one => Boolean(one.dataset.confirm || one.form?.dataset.confirm)")
        reviews = button.evaluate("one => Boolean(one.form && 'review' in one.form.dataset)")
        with self.page.expect_navigation() as navigation:
            self.page.evaluate("() => { window.isOldPage = true; }")
            button.click()
            if asks:
                self.confirm()
            elif reviews:
                self.confirm_review()
        if navigation.value.headers.get("dramatis-review") == "required":
            with self.page.expect_navigation() as navigation:
                self.page.locator(".dr-review-confirm button[type=submit]").click()
        return navigation.value.status

    def confirm_review(self) -> None:
        """Press the button of the review, if the server asks for one before the next page."""
        self.page.wait_for_function(
            "() => !window.isOldPage || Boolean(document.querySelector('#dr-review[open]'))"
        )
        if self.page.evaluate("() => Boolean(window.isOldPage)"):
            self.page.locator("#dr-review .dr-review-confirm button[type=submit]").click()

    def confirm(self) -> None:
        """Press the button of the confirmation dialog, which repeats the label of the action."""
        self.page.get_by_role("dialog", name="Are you sure?").locator("[data-part=go]").click()

    def choose_filter(self, label: str, option: str) -> None:
        """Choose a filter of a list; the list applies it at once."""
        self.page.wait_for_load_state()
        with self.page.expect_navigation():
            self.page.get_by_label(label).select_option(label=option)

    def follow(self, name: str) -> None:
        """Click a link and wait for the next page."""
        self.leave_by(self.page.get_by_role("main").get_by_role("link", name=name, exact=True))

    def leave_by(self, control: Locator) -> None:
        """Click something that opens another page, and wait for that page."""
        self.page.wait_for_load_state()
        with self.page.expect_navigation():
            control.click()

    def download(self, name: str, path: Path) -> str:
        """Click a link to a file, save the file, and return the name that the server suggests for it."""
        self.page.wait_for_load_state()
        with self.page.expect_download() as download:
            self.page.get_by_role("main").get_by_role("link", name=name, exact=True).click()
        download.value.save_as(path)
        return download.value.suggested_filename

    def open_palette(self) -> Locator:
        self.page.keyboard.press("Control+k")
        palette = self.page.get_by_role("dialog", name="Search or jump to")
        expect(palette).to_be_visible()
        return palette

    def search_palette(self, text: str) -> Locator:
        """Open the palette, type, and wait for the server's results: they replace the options."""
        palette = self.open_palette()
        self.page.keyboard.type(text)
        expect(palette.get_by_role("combobox")).to_have_value(text)
        expect(palette.locator("[aria-busy=true]")).to_have_count(0)
        return palette

    def sees(self, text: str) -> None:
        expect(self.page.get_by_role("main")).to_contain_text(text)

    def sees_message(self, text: str) -> None:
        expect(self.page.get_by_role("status").filter(has_text=text)).to_be_visible()

    def sees_field_error(self, label: str, text: str) -> None:
        """Expect this error text at the field, and `aria-invalid` on it."""
        control = field(self.page, label)
        expect(control).to_have_attribute("aria-invalid", "true")
        name = control.get_attribute("data-field") or control.get_attribute("id")
        error = self.page.locator(f"#{name}_error")
        expect(error).to_contain_text(text)


def field(page: Page, label: str) -> Locator:
    """Return the control with this label, optional or not; for a long text, its editor."""
    pattern = re.compile(rf"^{re.escape(label)}( optional)?$", re.IGNORECASE)
    controls = page.locator("input, select, textarea, [contenteditable]")
    return page.get_by_role("main").get_by_label(pattern).and_(controls)


def value_of(control: Locator) -> str:
    """Return what the form would send; an editor renders only visible lines, so its textarea is read."""
    return str(control.evaluate("one => (document.getElementById(one.dataset.field) ?? one).value"))


def set_value(control: Locator, value: str) -> None:
    """Select or type the value, replacing the old one."""
    # While the page loads, an editor replaces the textarea; text typed before that would be lost.
    control.wait_for(state="attached")
    control.page.wait_for_load_state()
    match control.evaluate("element => element.isContentEditable ? 'EDITOR' : element.tagName"):
        case "SELECT":
            control.select_option(label=value)
        case "EDITOR":
            # Only visible lines are in the DOM, so the editor's own select-all is used.
            control.press("ControlOrMeta+a")
            control.press("Delete")
            control.page.keyboard.insert_text(value)
        case _:
            control.fill(value)

"""What a person does on a page: go somewhere, fill in a field by its label, press a button."""

import re
from dataclasses import dataclass

from playwright.sync_api import Locator, Page, expect


@dataclass
class Visit:
    """A person's browser, as a rule inside one workspace."""

    page: Page
    slug: str = ""

    def go(self, path: str = "") -> int:
        """Open an address, from the workspace unless it begins with a slash, and tell the status."""
        answer = self.page.goto(path if path.startswith(("/", "http")) else f"/w/{self.slug}/{path}")
        assert answer is not None
        return answer.status

    def fill(self, **values: str) -> None:
        for label, value in values.items():
            put(field(self.page, label), value)

    def press(self, name: str) -> int:
        """Press a button that sends a form, and tell the status of the page that comes, once it is there."""
        button = self.page.get_by_role("main").get_by_role("button", name=name, exact=True)
        with self.page.expect_navigation() as caught:
            button.click()
        return caught.value.status

    def follow(self, name: str) -> None:
        self.page.get_by_role("main").get_by_role("link", name=name, exact=True).click()

    def sees(self, text: str) -> None:
        expect(self.page.get_by_role("main")).to_contain_text(text)

    def is_told(self, text: str) -> None:
        expect(self.page.get_by_role("status").filter(has_text=text)).to_be_visible()

    def is_refused(self, label: str, words: str) -> None:
        """The field says what is wrong, in words and to assistive software."""
        control = field(self.page, label)
        expect(control).to_have_attribute("aria-invalid", "true")
        name = control.get_attribute("data-field") or control.get_attribute("id")
        error = self.page.locator(f"#{name}_error")
        expect(error).to_contain_text(words)


def field(page: Page, label: str) -> Locator:
    """The control under this label, whether or not it is marked optional; for a long text, its editor."""
    words = re.compile(rf"^{re.escape(label)}( optional)?$", re.IGNORECASE)
    controls = page.locator("input, select, textarea, [contenteditable]")
    return page.get_by_role("main").get_by_label(words).and_(controls)


def value_of(control: Locator) -> str:
    """What the form would send; an editor draws only the lines in view, so its field is asked."""
    return str(control.evaluate("one => (document.getElementById(one.dataset.field) ?? one).value"))


def put(control: Locator, value: str) -> None:
    """Choose or write it, whatever stood there."""
    # A long text's field gives way to its editor while the page loads; what is typed before would be lost.
    control.wait_for(state="attached")
    control.page.wait_for_load_state()
    match control.evaluate("element => element.isContentEditable ? 'EDITOR' : element.tagName"):
        case "SELECT":
            control.select_option(label=value)
        case "EDITOR":
            # Only the lines in view are there to be replaced, so the editor itself is asked for all of them.
            control.press("ControlOrMeta+a")
            control.press("Delete")
            control.page.keyboard.insert_text(value)
        case _:
            control.fill(value)

"""Keyboard shortcuts. One table defines them for both the help dialog and the page's JavaScript."""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class Shortcut:
    """A keyboard shortcut.

    `keys` are alternatives, or keys pressed together if `is_combination` is set. `action` is the name of the
    action in the page's JavaScript.
    """

    keys: tuple[str, ...]
    label: str | Promise
    action: str
    # The shortcut works only on pages with an element that matches this CSS selector; empty means all pages.
    selector: str = ""
    is_combination: bool = False


# Elements that the row shortcuts move between: table rows with a link, and elements with `data-row`.
ROW_SELECTOR = "[data-row], main .dr-table tbody tr:has(a[href])"
CHECKBOX_SELECTOR = "[data-row] input[type=checkbox], main .dr-table tbody tr input[type=checkbox]"

SHORTCUT_GROUPS: tuple[tuple[str | Promise, tuple[Shortcut, ...]], ...] = (
    (
        _("Everywhere"),
        (
            Shortcut(("Ctrl", "K"), _("Search or jump to"), "palette", "#dr-palette", is_combination=True),
            Shortcut(("?",), _("Show keyboard shortcuts"), "help"),
            Shortcut(("u",), _("Undo the last action"), "press", '[data-key="u"]'),
            Shortcut(("Esc",), _("Close menu or dialog"), "close"),
        ),
    ),
    (
        _("Lists and boards"),
        (
            Shortcut(("j",), _("Next row"), "next", ROW_SELECTOR),
            Shortcut(("k",), _("Previous row"), "previous", ROW_SELECTOR),
            Shortcut(("o", "Enter"), _("Open the row"), "open", ROW_SELECTOR),
            Shortcut(("x", "Space"), _("Select the row"), "tick", CHECKBOX_SELECTOR),
            Shortcut(("/",), _("Search this list"), "search", "[data-search]"),
            Shortcut(("n",), _("New record"), "press", '[data-key="n"]'),
        ),
    ),
    (
        _("Page"),
        (
            Shortcut(("e",), _("Edit this record"), "press", '[data-key="e"]'),
            Shortcut(
                ("Ctrl", "M"),
                _("Toggle whether the Tab key indents or leaves the editor"),
                "tab",
                "[data-editor]",
                is_combination=True,
            ),
        ),
    ),
)

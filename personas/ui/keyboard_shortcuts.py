"""Keyboard shortcuts: one table, shown in the help dialog, from which the page's script reads them."""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class Shortcut:
    """Alternative keys (or a combination), the script's action, and the element the page must contain."""

    keys: tuple[str, ...]
    label: str | Promise
    action: str
    # A CSS selector; empty means every page.
    selector: str = ""
    is_combination: bool = False


# Rows of lists and boards; pages can mark other elements with data-row.
ROW_SELECTOR = "[data-row], main .dr-table tbody tr:has(a[href])"
CHECKBOX_SELECTOR = "[data-row] input[type=checkbox], main .dr-table tbody tr input[type=checkbox]"

SHORTCUT_GROUPS: tuple[tuple[str | Promise, tuple[Shortcut, ...]], ...] = (
    (
        _("Everywhere"),
        (
            Shortcut(("Ctrl", "K"), _("Search or jump to"), "palette", "#dr-palette", is_combination=True),
            Shortcut(("?",), _("This help"), "help"),
            Shortcut(("u",), _("Undo what was just done"), "press", '[data-key="u"]'),
            Shortcut(("Esc",), _("Close menu or dialog"), "close"),
        ),
    ),
    (
        _("Lists and boards"),
        (
            Shortcut(("j",), _("Next row"), "next", ROW_SELECTOR),
            Shortcut(("k",), _("Previous row"), "previous", ROW_SELECTOR),
            Shortcut(("o", "Enter"), _("Open the row"), "open", ROW_SELECTOR),
            Shortcut(("x", "Space"), _("Tick the row"), "tick", CHECKBOX_SELECTOR),
            Shortcut(("/",), _("Search in this list"), "search", "[data-search]"),
        ),
    ),
    (
        _("This page"),
        (
            Shortcut(("e",), _("Edit what is shown"), "press", '[data-key="e"]'),
            Shortcut(
                ("Ctrl", "M"),
                _("In the editor: Tab indents, or leaves it again"),
                "tab",
                "[data-editor]",
                is_combination=True,
            ),
        ),
    ),
)

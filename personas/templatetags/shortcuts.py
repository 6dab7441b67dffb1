"""Template tag for the table of keys."""

from typing import Any

from django import template

from personas.ui.keyboard_shortcuts import SHORTCUT_GROUPS

register = template.Library()


@register.simple_tag
def shortcut_groups() -> Any:
    """Every group of keys with its title."""
    return SHORTCUT_GROUPS

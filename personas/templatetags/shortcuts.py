"""Template tag for the table of keyboard shortcuts."""

from typing import Any

from django import template

from personas.ui.keyboard_shortcuts import SHORTCUT_GROUPS

register = template.Library()


@register.simple_tag
def shortcut_groups() -> Any:
    return SHORTCUT_GROUPS

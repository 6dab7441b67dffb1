"""Template filter for messages with an undo button."""

from django import template
from django.contrib.messages.storage.base import Message

from personas.ui import toasts

register = template.Library()


@register.filter
def undo(message: Message) -> toasts.UndoAction | None:
    """Return the undo action of a message, or None if it has no undo button."""
    return toasts.get_undo_action(message)

"""Template filter for messages that can be taken back."""

from django import template
from django.contrib.messages.storage.base import Message

from personas.ui import toasts

register = template.Library()


@register.filter
def undo(message: Message) -> toasts.UndoAction | None:
    """Where the button of a message leads, and what it sends; None where there is no way back."""
    return toasts.get_undo_action(message)

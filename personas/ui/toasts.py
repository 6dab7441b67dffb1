"""Toasts: short messages after an action, with an undo button if the action can be undone."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.contrib import messages
from django.contrib.messages.storage.base import Message
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django_htmx.http import trigger_client_event

from personas.ui.responses import REVIEWED_FIELD, UNDO_EFFECT, create_review_token

# The name of the browser event with which the page's JavaScript receives toasts.
TOAST_EVENT = "dr:toast"


@dataclass(frozen=True)
class UndoAction:
    """The undo button of a toast: the URL of its POST request and the form fields."""

    url: str
    fields: Mapping[str, str] = field(default_factory=dict)


def add_toast(
    request: HttpRequest, text: str, *, undo_url: str = "", undo_fields: Mapping[str, str] | None = None
) -> None:
    """Add a success message. With `undo_url`, it has an undo button that sends a POST request to this URL.

    Undoing needs no second review: it restores what was there before the action.
    """
    fields = dict(undo_fields or {})
    user = getattr(request, "user", None)
    if undo_url and user is not None and user.pk:
        fields[REVIEWED_FIELD] = create_review_token(user.pk, undo_url, UNDO_EFFECT)
    undo = {"undo": undo_url, "fields": fields} if undo_url else {}
    messages.success(request, text, extra_tags=json.dumps(undo) if undo else "")


def get_undo_action(message: Message) -> UndoAction | None:
    """Parse the undo action that `add_toast` stored in the message's tags; None if there is none."""
    try:
        data = json.loads(message.extra_tags or "")
        return UndoAction(data["undo"], data["fields"])
    except (ValueError, TypeError, KeyError):
        return None


def attach_toasts(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Add pending messages to an htmx response as a browser event.

    Without this, the messages would only appear on the next complete page.
    """
    toasts = [toast_json(message) for message in messages.get_messages(request)]
    if toasts:
        trigger_client_event(response, TOAST_EVENT, {"toasts": toasts})
    return response


def toast_json(message: Message) -> dict[str, Any]:
    undo = get_undo_action(message)
    toast = {"text": str(message.message), "tone": message.level_tag}
    return toast | ({"undo": undo.url, "fields": dict(undo.fields)} if undo else {})

"""Short words after an action, with a button that takes it back where it can be taken back."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.contrib import messages
from django.contrib.messages.storage.base import Message
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django_htmx.http import trigger_client_event

# What a page's script listens for.
TOAST_EVENT = "dr:toast"


@dataclass(frozen=True)
class UndoAction:
    """A form of one button: where it goes and what it sends along."""

    url: str
    fields: Mapping[str, str] = field(default_factory=dict)


def add_toast(
    request: HttpRequest, text: str, *, undo_url: str = "", undo_fields: Mapping[str, str] | None = None
) -> None:
    """Tell that something was done; with an address, offer to undo it by a POST there."""
    undo = {"undo": undo_url, "fields": dict(undo_fields or {})} if undo_url else {}
    messages.success(request, text, extra_tags=json.dumps(undo) if undo else "")


def get_undo_action(message: Message) -> UndoAction | None:
    """The way back that a message holds; other apps' tags are none."""
    try:
        data = json.loads(message.extra_tags or "")
        return UndoAction(data["undo"], data["fields"])
    except (ValueError, TypeError, KeyError):
        return None


def attach_toasts(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Let a fragment carry what waits to be said, instead of the next whole page."""
    toasts = [toast_json(message) for message in messages.get_messages(request)]
    if toasts:
        trigger_client_event(response, TOAST_EVENT, {"toasts": toasts})
    return response


def toast_json(message: Message) -> dict[str, Any]:
    undo = get_undo_action(message)
    toast = {"text": str(message.message), "tone": message.level_tag}
    return toast | ({"undo": undo.url, "fields": dict(undo.fields)} if undo else {})

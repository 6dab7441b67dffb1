"""How large a request's body may be, which a view can say for itself."""

from collections.abc import Callable
from typing import Any, TypeVar

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import Resolver404, resolve

V = TypeVar("V", bound=Callable[..., HttpResponseBase])


def allow_body_size(size: int) -> Callable[[V], V]:
    """Let a view take bodies larger than the others do; every further wrapper has to carry the mark over."""

    def mark(view: V) -> V:
        view.most_bytes = size  # type: ignore[attr-defined]  # read below
        return view

    return mark


def get_content_length(request: HttpRequest, *, unstated: int = 0) -> int:
    """What the header says; `unstated` stands for a length that is no number."""
    stated = request.META.get("CONTENT_LENGTH") or "0"
    return int(stated) if stated.isascii() and stated.isdigit() else unstated


def get_body_limit(path: str) -> int:
    """What the view at this address takes; an address that leads nowhere takes what all do."""
    try:
        view: Any = resolve(path).func
    except Resolver404:
        view = None
    return int(getattr(view, "most_bytes", settings.DATA_UPLOAD_MAX_MEMORY_SIZE))

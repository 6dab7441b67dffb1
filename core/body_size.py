"""Maximum size of a request body, with a decorator that raises it for one view."""

from collections.abc import Callable
from typing import Any, TypeVar

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import Resolver404, resolve

V = TypeVar("V", bound=Callable[..., HttpResponseBase])


def allow_body_size(size: int) -> Callable[[V], V]:
    """Set the maximum body size of a view, in bytes.

    The limit is an attribute of the view: decorators around the view must copy it (functools.wraps does).
    """

    def set_limit(view: V) -> V:
        view.max_body_bytes = size  # type: ignore[attr-defined]  # read below
        return view

    return set_limit


def get_content_length(request: HttpRequest, *, invalid: int = 0) -> int:
    """Return the Content-Length, 0 if it is missing, and `invalid` if it is not a number."""
    header = request.META.get("CONTENT_LENGTH") or "0"
    return int(header) if header.isascii() and header.isdigit() else invalid


def get_body_limit(path: str) -> int:
    """Return the maximum body size, in bytes, of the view at this path, or the default limit."""
    try:
        view: Any = resolve(path).func
    except Resolver404:
        view = None
    return int(getattr(view, "max_body_bytes", settings.DATA_UPLOAD_MAX_MEMORY_SIZE))

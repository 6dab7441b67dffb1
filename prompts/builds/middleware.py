"""Tells whoever edited something what it meant for prompts: on the next page, or in the API's answer."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import ngettext


@dataclass
class RebuildCounts:
    """Prompts that this request rebuilt, and those left to the workers."""

    built: int = 0
    pending: int = 0
    failed: int = 0


_counts_var: ContextVar[RebuildCounts | None] = ContextVar("echo", default=None)


def start_rebuild_counts() -> RebuildCounts:
    """Begin to count, for one request."""
    echo = RebuildCounts()
    _counts_var.set(echo)
    return echo


def get_rebuild_counts() -> RebuildCounts:
    """The counts of this request; outside of one they go nowhere."""
    return _counts_var.get() or RebuildCounts()


API_PREFIX = "/api/"
HEADER_PREFIX = "Dramatis-Prompts-"
# In the session until the next page has said how far the workers have come since.
REBUILD_SESSION_KEY = "rebuilding_since"


class RebuildCountsMiddleware:
    """Counts what a request rebuilt; programs are told at once, people on the page they are led to."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        echo, begun = start_rebuild_counts(), timezone.now()
        response = self.get_response(request)
        if request.path.startswith(API_PREFIX):
            set_count_headers(response, echo)
        elif request.method == "POST" and 300 <= response.status_code < 400:
            add_rebuild_messages(request, echo)
            if echo.pending:
                request.session[REBUILD_SESSION_KEY] = begun.isoformat()
        return response


def set_count_headers(response: HttpResponse, echo: RebuildCounts) -> None:
    counts = {"Built": echo.built, "Pending": echo.pending, "Failed": echo.failed}
    for name, count in counts.items():
        if count:
            response[f"{HEADER_PREFIX}{name}"] = str(count)


def add_rebuild_messages(request: HttpRequest, echo: RebuildCounts) -> None:
    if echo.built:
        words = ngettext("%(count)s prompt rebuilt.", "%(count)s prompts rebuilt.", echo.built)
        messages.info(request, words % {"count": f"{echo.built:,}"})
    if echo.pending:
        words = ngettext(
            "%(count)s prompt is being rebuilt.", "%(count)s prompts are being rebuilt.", echo.pending
        )
        messages.info(request, words % {"count": f"{echo.pending:,}"})
    if echo.failed:
        words = ngettext(
            "%(count)s prompt could not be built and stays as it was: its versions say why.",
            "%(count)s prompts could not be built and stay as they were: their versions say why.",
            echo.failed,
        )
        messages.warning(request, words % {"count": f"{echo.failed:,}"})

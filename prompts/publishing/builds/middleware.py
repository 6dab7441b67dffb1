"""Middleware that reports how many prompts a request rebuilt.

Pages show the numbers as messages, API responses contain them as headers.
"""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import ngettext


@dataclass
class RebuildCounts:
    """Numbers of prompts that a request rebuilt, left to the workers (pending), or failed to build."""

    built: int = 0
    pending: int = 0
    failed: int = 0


_counts_var: ContextVar[RebuildCounts | None] = ContextVar("rebuild_counts", default=None)


def start_rebuild_counts() -> RebuildCounts:
    """Reset the counts at the start of a request."""
    counts = RebuildCounts()
    _counts_var.set(counts)
    return counts


def get_rebuild_counts() -> RebuildCounts:
    """Return the counts of the current request; outside a request, a new object that nothing reads."""
    return _counts_var.get() or RebuildCounts()


API_PREFIX = "/api/"
HEADER_PREFIX = "Dramatis-Prompts-"
# Session key for the start time of the last request that left rebuilds pending. The next page removes the
# entry and shows the workers' progress since then.
REBUILD_SESSION_KEY = "rebuilding_since"


class RebuildCountsMiddleware:
    """Add rebuild counts to API responses as headers, and to pages as messages after a redirected POST."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        counts, started_at = start_rebuild_counts(), timezone.now()
        response = self.get_response(request)
        if request.path.startswith(API_PREFIX):
            set_count_headers(response, counts)
        elif request.method == "POST" and 300 <= response.status_code < 400:
            add_rebuild_messages(request, counts)
            if counts.pending:
                request.session[REBUILD_SESSION_KEY] = started_at.isoformat()
        return response


def set_count_headers(response: HttpResponse, counts: RebuildCounts) -> None:
    headers = {"Built": counts.built, "Pending": counts.pending, "Failed": counts.failed}
    for name, count in headers.items():
        if count:
            response[f"{HEADER_PREFIX}{name}"] = str(count)


def add_rebuild_messages(request: HttpRequest, counts: RebuildCounts) -> None:
    if counts.built:
        message = ngettext("%(count)s prompt rebuilt.", "%(count)s prompts rebuilt.", counts.built)
        messages.info(request, message % {"count": f"{counts.built:,}"})
    if counts.pending:
        message = ngettext(
            "%(count)s prompt is being rebuilt.", "%(count)s prompts are being rebuilt.", counts.pending
        )
        messages.info(request, message % {"count": f"{counts.pending:,}"})
    if counts.failed:
        message = ngettext(
            "%(count)s prompt could not be built and is unchanged. The reason is on its version page.",
            "%(count)s prompts could not be built and are unchanged. The reasons are on their version pages.",
            counts.failed,
        )
        messages.warning(request, message % {"count": f"{counts.failed:,}"})

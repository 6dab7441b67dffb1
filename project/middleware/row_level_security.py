"""Every request begins with no workspace in sight; the gates open one when they have let it in."""

from collections.abc import Callable, Iterable, Iterator

from django.http import FileResponse, HttpRequest
from django.http.response import HttpResponseBase

from core.db.workspace_scope import current_scope, no_workspace, use_scope


class RowLevelSecurityMiddleware:
    """Whatever a gate has opened is closed again with the request: the thread serves someone else next."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with no_workspace():
            response = self.get_response(request)
            if getattr(response, "streaming", False) and not isinstance(response, FileResponse):
                response.streaming_content = iterate_in_scope(response.streaming_content, current_scope())  # type: ignore[attr-defined]  # it streams
            return response


def iterate_in_scope(chunks: Iterable[bytes], far: str) -> Iterator[bytes]:
    """What is read only while it is sent is read with the sight of its request, chunk by chunk."""
    rest = iter(chunks)
    while True:
        with use_scope(far):
            chunk = next(rest, None)
        if chunk is None:
            return
        yield chunk

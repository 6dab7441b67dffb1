"""Middleware that starts each request without a workspace scope; access checks enter the workspace."""

from collections.abc import Callable, Iterable, Iterator

from django.http import FileResponse, HttpRequest
from django.http.response import HttpResponseBase

from core.db.workspace_scope import current_scope, no_workspace, use_scope


class RowLevelSecurityMiddleware:
    """Reset the workspace scope at the end of the request, because the thread serves another request next."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with no_workspace():
            response = self.get_response(request)
            if getattr(response, "streaming", False) and not isinstance(response, FileResponse):
                response.streaming_content = iterate_in_scope(response.streaming_content, current_scope())  # type: ignore[attr-defined]  # it streams
            return response


def iterate_in_scope(chunks: Iterable[bytes], scope: str) -> Iterator[bytes]:
    """Read each chunk of a streaming response in the scope of its request, which has ended by then."""
    iterator = iter(chunks)
    while True:
        with use_scope(scope):
            chunk = next(iterator, None)
        if chunk is None:
            return
        yield chunk

"""Middleware that starts each request without a workspace scope. The scope is set when access was checked."""

from collections.abc import Callable, Iterable, Iterator

from django.http import FileResponse, HttpRequest
from django.http.response import HttpResponseBase

from core.db.workspace_scope import current_scope, no_workspace, use_scope


class RowLevelSecurityMiddleware:
    """Run each request without a workspace scope at first.

    At the end the scope is reset, because the same thread handles other requests.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with no_workspace():
            response = self.get_response(request)
            if getattr(response, "streaming", False) and not isinstance(response, FileResponse):
                response.streaming_content = iterate_in_scope(response.streaming_content, current_scope())  # type: ignore[attr-defined]  # it streams
            return response


def iterate_in_scope(chunks: Iterable[bytes], scope: str) -> Iterator[bytes]:
    """Read each chunk of a streaming response in the workspace scope of its request.

    Chunks are read after the middleware has returned and has reset the scope.
    """
    iterator = iter(chunks)
    while True:
        with use_scope(scope):
            chunk = next(iterator, None)
        if chunk is None:
            return
        yield chunk

"""Every request begins with no workspace in sight; the gates open one when they have let it in."""

from collections.abc import Callable, Iterable, Iterator

from django.http import FileResponse, HttpRequest
from django.http.response import HttpResponseBase

from core.db.workspace_scope import looking, nowhere, sight


class WallMiddleware:
    """Whatever a gate has opened is closed again with the request: the thread serves someone else next."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with nowhere():
            response = self.get_response(request)
            if getattr(response, "streaming", False) and not isinstance(response, FileResponse):
                response.streaming_content = carried(response.streaming_content, sight())  # type: ignore[attr-defined]  # it streams
            return response


def carried(chunks: Iterable[bytes], far: str) -> Iterator[bytes]:
    """What is read only while it is sent is read with the sight of its request, chunk by chunk."""
    rest = iter(chunks)
    while True:
        with looking(far):
            chunk = next(rest, None)
        if chunk is None:
            return
        yield chunk

"""WSGI middleware that applies the limits of this package to each request."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from core.request_body import LimitedBody, TooManyBodyReads, slots
from core.request_deadline import check_request_deadline
from project.request_limits.deadlines import deadlines

WsgiEnviron = dict[str, Any]
StartResponse = Callable[..., Any]
WsgiApplication = Callable[[WsgiEnviron, StartResponse], Iterable[bytes]]
# A streamed response up to this size is sent at once, so that its reader cannot block a thread.
MAX_BUFFERED_BYTES = 1024 * 1024
STREAM_GRACE_SECONDS = 2.0


class RequestLimits:
    """Limit the body, the duration and the streamed response of each request.

    A streamed response blocks its thread while the client does not read, so it takes a slot as a body does.
    Without a free slot the response is 503.
    """

    def __init__(self, application: WsgiApplication) -> None:
        self.application = application

    def __call__(self, environ: WsgiEnviron, start: StartResponse) -> Iterable[bytes]:
        body = environ["wsgi.input"] = LimitedBody(
            environ["wsgi.input"], has_length=bool(environ.get("CONTENT_LENGTH"))
        )
        request = deadlines.begin(environ["PATH_INFO"], body)
        try:
            response = self.application(environ, start)
            if not getattr(response, "streaming", False):
                return EndingResponse(response, response)
            request.is_streaming = True
            return self.limit_stream(response, start)
        except BaseException:
            deadlines.end()
            raise

    def limit_stream(self, response: Any, start: StartResponse) -> Iterable[bytes]:
        chunks, size, iterator = [], 0, iter(response)
        try:
            for chunk in iterator:
                chunks.append(chunk)
                size += len(chunk)
                if size > MAX_BUFFERED_BYTES:
                    break
            else:
                return EndingResponse([b"".join(chunks)], response)
            if slots.acquire(is_few=True):
                return EndingResponse(stream_until_deadline(chunks, iterator), response, has_slot=True)
        except BaseException:
            response.close()
            raise
        body = TooManyBodyReads.detail.encode()
        headers = [*TooManyBodyReads.headers.items(), ("Content-Type", "text/plain; charset=utf-8")]
        start("503 Service Unavailable", headers)
        return EndingResponse([body], response)


def stream_until_deadline(first: list[bytes], rest: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the chunks, and raise RequestTimeout soon after the deadline.

    An export notices the deadline first and ends with a note. The error is for streams that do not.
    """
    for chunk in chain((b"".join(first),), rest):
        check_request_deadline(grace=STREAM_GRACE_SECONDS)
        yield chunk


class EndingResponse:
    """The chunks of a response. `close()` closes the response and ends the request's deadline."""

    def __init__(self, chunks: Iterable[bytes], response: Any, *, has_slot: bool = False) -> None:
        self._chunks, self._response, self._has_slot = chunks, response, has_slot

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._chunks)

    def close(self) -> None:
        try:
            if close := getattr(self._response, "close", None):
                close()
        finally:
            if self._has_slot:
                self._has_slot = False
                slots.release(is_few=True)
            deadlines.end()

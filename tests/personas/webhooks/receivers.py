"""A receiver of webhooks for tests: a real HTTP server that stores what it gets."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Received:
    """One request: its headers, its body, and when it came, by the monotonic clock."""

    headers: dict[str, str]
    body: bytes
    at: float

    @property
    def event(self) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(self.body)
        return event

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


@dataclass
class Answer:
    """The response of a receiver."""

    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    wait: float = 0.0


class Receiver:
    """A server on a port of its own. `answer` decides the response of each request."""

    def __init__(self, answer: Callable[[Received], Answer]) -> None:
        self.answer, self.received = answer, list[Received]()
        self.closed = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                request = Received(
                    {name.lower(): value for name, value in self.headers.items()}, body, time.monotonic()
                )
                receiver.received.append(request)
                answer = receiver.answer(request)
                if answer.wait and receiver.closed.wait(answer.wait):
                    # The sender has given up.
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, *args: object) -> None:
                """Write nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.closed.set()
        self.server.shutdown()
        self.server.server_close()


@contextmanager
def receiving(answer: Answer | Callable[[Received], Answer] | None = None) -> Iterator[Receiver]:
    fixed = answer if isinstance(answer, Answer) else Answer()
    receiver = Receiver(answer if callable(answer) else lambda _: fixed)
    try:
        yield receiver
    finally:
        receiver.close()

"""Stub HTTP server with scripted responses, for cases that the real server rarely or never produces."""

import contextlib
import json
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

CACHING = "private, max-age=30, stale-while-revalidate=300, stale-if-error=86400"


@dataclass(frozen=True)
class StubResponse:
    """One scripted response."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ReceivedRequest:
    """One request that the stub received; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


Reply = Callable[[ReceivedRequest], StubResponse | None]


class StubServer:
    """Respond with `reply`, and record the requests. None closes the connection without a response."""

    def __init__(self) -> None:
        self.requests: list[ReceivedRequest] = []
        self.open_connections: list[socket.socket] = []
        self.reply: Reply = lambda request: StubResponse(500)
        self.server: ThreadingHTTPServer | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def respond_with(self, *responses: StubResponse | None) -> None:
        """Send these responses in turn, and repeat the last one."""
        remaining = list(responses)
        self.reply = lambda request: remaining.pop(0) if len(remaining) > 1 else remaining[0]

    def start(self) -> None:
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                stub.open_connections.append(self.connection)

            def handle_one(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                lower_headers = {name.lower(): value for name, value in self.headers.items()}
                request = ReceivedRequest(self.command, self.path, lower_headers, self.rfile.read(size))
                stub.requests.append(request)
                response = stub.reply(request)
                if response is None:
                    self.close_connection = True
                    return
                self.send_response(response.status)
                for name, value in response.headers.items():
                    self.send_header(name, value)
                if response.status != 304:
                    self.send_header("Content-Length", str(len(response.body)))
                self.end_headers()
                self.wfile.write(response.body)

            do_GET = do_POST = handle_one  # noqa: N815  # named by http.server

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()
            self.server = None
        while self.open_connections:
            with contextlib.suppress(OSError):
                self.open_connections.pop().shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def run_stub_server() -> Iterator[StubServer]:
    server = StubServer()
    server.start()
    try:
        yield server
    finally:
        server.stop()


def hash_text(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def prompt_body(text: str, number: int = 1, /, **changes: Any) -> dict[str, Any]:
    """Return a prompt document as the server writes it."""
    digest = hash_text(f"version {text}")
    document = {
        "version": number,
        "digest": digest,
        "layout": "dramatis",
        "created_at": "2026-03-07T14:55:05Z",
        "tokens": {"total": 3, "sections": {"soul": 3}},
        "served_digest": hash_text(text),
        "text": text,
        "blocks": [
            {"text": text[:3], "volatility": "release", "is_cacheable": True},
            {"text": text[3:], "volatility": "turn", "is_cacheable": False},
        ],
        "segments": [
            {
                "section": "soul",
                "volatility": "release",
                "range": [0, len(text)],
                "slot": None,
                "is_cacheable": True,
            }
        ],
        "agent": "pilot",
        "channel": "deck",
        "label": "production",
        "as_of": None,
        "slots": {"now": "2026-03-07T14:55:05+00:00"},
        "tools": [],
        "warnings": [],
        "messages": [],
        "ledger_id": 40 + number,
    }
    return document | changes


def prompt_response(text: str, number: int = 1, /, **changes: Any) -> StubResponse:
    body = prompt_body(text, number, **changes)
    headers = {
        "Content-Type": "application/json",
        "ETag": make_etag(text),
        "Cache-Control": CACHING,
        "Dramatis-Ledger": str(40 + number),
    }
    return StubResponse(200, json.dumps(body, ensure_ascii=False).encode(), headers)


def make_etag(text: str) -> str:
    return f'W/"{hash_text(f"version {text}")}"'


def not_modified_response(text: str) -> StubResponse:
    return StubResponse(304, headers={"ETag": make_etag(text), "Cache-Control": CACHING})


def problem_response(status: int, code: str, **headers: str) -> StubResponse:
    body = {
        "type": f"/api/v1/docs/errors#{code}",
        "title": "Refused",
        "status": status,
        "detail": "It is refused.",
        "code": code,
        "request_id": "req-7",
        "errors": [{"detail": "This field is required.", "pointer": "/text"}],
    }
    extra_headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return StubResponse(
        status, json.dumps(body).encode(), {"Content-Type": "application/problem+json", **extra_headers}
    )

"""A small server that answers as it is told: for what the real one does rarely, or never."""

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
class Said:
    """One answer."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Heard:
    """One request; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


Reply = Callable[[Heard], Said | None]


class StandIn:
    """Answers with `reply`; None means to hang up without a word."""

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self.open: list[socket.socket] = []
        self.reply: Reply = lambda heard: Said(500)
        self.server: ThreadingHTTPServer | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def says(self, *answers: Said | None) -> None:
        """These in turn, the last of them for ever."""
        left = list(answers)
        self.reply = lambda heard: left.pop(0) if len(left) > 1 else left[0]

    def start(self) -> None:
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                stand_in.open.append(self.connection)

            def handle_one(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                named = {name.lower(): value for name, value in self.headers.items()}
                heard = Heard(self.command, self.path, named, self.rfile.read(size))
                stand_in.heard.append(heard)
                said = stand_in.reply(heard)
                if said is None:
                    self.close_connection = True
                    return
                self.send_response(said.status)
                for name, value in said.headers.items():
                    self.send_header(name, value)
                if said.status != 304:
                    self.send_header("Content-Length", str(len(said.body)))
                self.end_headers()
                self.wfile.write(said.body)

            do_GET = do_POST = handle_one  # noqa: N815  # named by http.server

            def log_message(self, *_: Any) -> None:
                """Tests speak for themselves."""

        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()
            self.server = None
        while self.open:
            with contextlib.suppress(OSError):
                self.open.pop().shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def standing() -> Iterator[StandIn]:
    server = StandIn()
    server.start()
    try:
        yield server
    finally:
        server.stop()


def digest_of(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def prompt_body(text: str, number: int = 1, /, **changed: Any) -> dict[str, Any]:
    """As the server writes it."""
    digest = digest_of(f"version {text}")
    said = {
        "version": {
            "number": number,
            "digest": digest,
            "layout": "dramatis",
            "created_at": "2026-03-07T14:55:05Z",
        },
        "digest": digest,
        "tokens": {"total": 3, "sections": {"soul": 3}},
        "served_digest": digest_of(text),
        "text": text,
        "segments": [
            {
                "section": "soul",
                "volatility": "release",
                "range": [0, len(text)],
                "slot": None,
                "cacheable": True,
            }
        ],
        "cache_boundaries": [{"offset": 3, "volatility": "release"}],
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
    return said | changed


def prompt_said(text: str, number: int = 1, /, **changed: Any) -> Said:
    body = prompt_body(text, number, **changed)
    headers = {
        "Content-Type": "application/json",
        "ETag": etag_of(text),
        "Cache-Control": CACHING,
        "X-Ledger-ID": str(40 + number),
    }
    return Said(200, json.dumps(body, ensure_ascii=False).encode(), headers)


def etag_of(text: str) -> str:
    return f'W/"{digest_of(f"version {text}")}"'


def unchanged(text: str) -> Said:
    return Said(304, headers={"ETag": etag_of(text), "Cache-Control": CACHING})


def problem_said(status: int, code: str, **headers: str) -> Said:
    body = {
        "type": f"/api/v1/docs/errors#{code}",
        "title": "Refused",
        "status": status,
        "detail": "It is refused.",
        "code": code,
        "request_id": "req-7",
        "errors": [{"detail": "This is needed.", "pointer": "/text"}],
    }
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Said(status, json.dumps(body).encode(), {"Content-Type": "application/problem+json", **named})

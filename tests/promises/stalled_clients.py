"""Clients that stop in the middle of a request or response: raw sockets on 127.0.0.1."""

import http.client
import select
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle, islice
from threading import Event, Thread
from typing import Any, Self

from tests.clients.live import HOST
from tests.promises import LARGE_STREAM_PATH

HEAD, NO_KEY, WRONG_KEY, NO_SESSION = "head", "body without key", "body, wrong key", "page without session"
KEY, SESSION, LOGIN, FILE, STREAM = "body with key", "page with session", "login", "file", "stream"
# Refused without reading the body, so at once.
REFUSED = frozenset({NO_KEY, WRONG_KEY, NO_SESSION})
READING = frozenset({FILE, STREAM})
# Those that would hold threads come first.
KINDS = (KEY, KEY, NO_KEY, SESSION, HEAD, LOGIN, STREAM, WRONG_KEY, FILE, NO_SESSION, RENDER := "render")
MAX_CLIENTS = 200
# Bytes, so that a response does not fit into the client's buffer.
SMALL_BUFFER = 4_096
POLL_MS = 20


@dataclass
class StalledClient:
    """One connection; `closed_at` is 0 while the server keeps it open."""

    kind: str
    socket: socket.socket
    opened_at: float
    closed_at: float = 0.0
    status: str = ""

    @property
    def seconds(self) -> float:
        return (self.closed_at or time.monotonic()) - self.opened_at


def build_request(kind: str, facts: Mapping[str, Any]) -> bytes:
    """The part of a request that the client sends."""
    key = f"Authorization: Bearer {facts['editor']}\r\n"
    wrong_key = f"Authorization: Bearer {facts['revoked']}\r\n"
    # Django rejects a form without this cookie before it reads the body.
    csrf = f"dramatis-csrf={'a' * 32}"
    render = "/api/v1/agents/a0/channels/web/prompt:render"
    heads = {
        HEAD: "POST /api/v1/memories HTTP/1.1\r\n",
        NO_KEY: "POST /api/v1/memories HTTP/1.1\r\n",
        WRONG_KEY: f"POST {render} HTTP/1.1\r\n{wrong_key}",
        KEY: f"POST /api/v1/memories HTTP/1.1\r\n{key}",
        RENDER: f"POST {render} HTTP/1.1\r\nAuthorization: Bearer {facts['bot']}\r\n",
        NO_SESSION: "POST /w/harbour/agents/new/ HTTP/1.1\r\n",
        SESSION: f"POST /w/harbour/agents/new/ HTTP/1.1\r\nCookie: {facts['cookie']}; {csrf}\r\n",
        LOGIN: f"POST /accounts/login/ HTTP/1.1\r\nCookie: {csrf}\r\n",
        FILE: "GET /static/js/studio.js HTTP/1.1\r\n",
        STREAM: f"GET {LARGE_STREAM_PATH} HTTP/1.1\r\n",
    }
    head = f"{heads[kind]}Host: {HOST}\r\n"
    if kind == HEAD:
        return head.encode()
    if kind in READING:
        return f"{head}\r\n".encode()
    is_page = kind in {NO_SESSION, SESSION, LOGIN}
    content_type = "application/x-www-form-urlencoded" if is_page else "application/json"
    return f"{head}Content-Type: {content_type}\r\nContent-Length: 500\r\n\r\n{{".encode()


@dataclass
class StalledClients:
    """Opens the connections, and notes when the server closes each."""

    port: int
    facts: Mapping[str, Any]
    clients: list[StalledClient] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._stopping = Event()
        self._thread = Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        for client in self.clients:
            client.socket.close()

    def open(self, number: int, kinds: Sequence[str] = KINDS) -> None:
        assert number <= MAX_CLIENTS
        for kind in islice(cycle(kinds), number):
            connection = socket.socket()
            if kind in READING:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
            connection.settimeout(5)
            connection.connect((HOST, self.port))
            connection.sendall(build_request(kind, self.facts))
            self.clients.append(StalledClient(kind, connection, time.monotonic()))

    def wait_until_closed(self, seconds: float, kinds: frozenset[str] = frozenset(KINDS)) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.list_open(kinds):
            time.sleep(0.05)

    def list_open(self, kinds: frozenset[str] = frozenset(KINDS)) -> list[str]:
        return [client.kind for client in self.clients if client.kind in kinds and not client.closed_at]

    def longest(self, kinds: frozenset[str] = frozenset(KINDS)) -> float:
        return max(client.seconds for client in self.clients if client.kind in kinds)

    def describe(self) -> str:
        """The longest time and the statuses by kind, for the output of a failed test."""
        kinds = dict.fromkeys(client.kind for client in self.clients)
        return "; ".join(
            f"{kind}: {self.longest(frozenset({kind})):.1f} s {sorted(self.statuses(kind))}" for kind in kinds
        )

    def statuses(self, *kinds: str) -> set[str]:
        return {client.status for client in self.clients if client.kind in kinds}

    def _watch(self) -> None:
        while not self._stopping.is_set():
            poll, open_clients = select.poll(), [one for one in list(self.clients) if not one.closed_at]
            # Readers do not read, so only the end of the connection counts.
            for client in open_clients:
                poll.register(client.socket, select.POLLRDHUP)
            ended = dict(poll.poll(POLL_MS)) if open_clients else {}
            if not open_clients:
                time.sleep(POLL_MS / 1e3)
            for client in open_clients:
                if client.socket.fileno() in ended:
                    client.status = "" if client.kind in READING else read_status(client.socket)
                    client.closed_at = time.monotonic()


def read_status(connection: socket.socket) -> str:
    with suppress(OSError):
        return connection.recv(65_536).decode("latin-1").partition(" ")[2][:3]
    return "reset"


def time_request(port: int, path: str, timeout: float) -> tuple[int, str, float]:
    """Status, Retry-After and duration of a request; status 0 if there was no answer in time."""
    connection, began = http.client.HTTPConnection(HOST, port, timeout=timeout), time.monotonic()
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
        return response.status, response.getheader("Retry-After") or "", time.monotonic() - began
    except OSError:
        return 0, "", time.monotonic() - began
    finally:
        connection.close()

"""Load generator in a separate process: keep-alive raw sockets, one request at a time on each.

Reads a JSON object from standard input (host, port, turns, connections, seconds) and writes one to standard
output: requests, seconds, milliseconds at the 50th and 99th percentile, statuses, length of a body, and how
much of a core the generator itself used.

`turns` are the operations that a connection performs in turn, each a list of requests sent one after the
other. Connections start at different turns. An operation is timed from its first byte to the last byte of its
last response, and counted once, with the worst of its statuses. In a request `@who@` is replaced by the
number of the connection and `@counter@` by a number that is unique on it; both keep their length, so
Content-Length stays correct.
"""

import json
import select
import socket
import sys
import time
from typing import Any

END, LENGTH = b"\r\n\r\n", b"content-length: "
WHO, COUNTER = b"@who@", b"@counter@"
# Linux only: without it, delayed ACKs add 40 ms if a server sends head and body separately.
QUICK_ACK: int | None = getattr(socket, "TCP_QUICKACK", None)
# Seconds to wait for the last responses.
LAST_RESPONSE_TIMEOUT = 60
Turns = list[list[bytes]]


class LoadConnection:
    """One connection."""

    def __init__(
        self, address: tuple[str, int], turns: Turns, connection_number: int, first_turn: int
    ) -> None:
        self.socket = socket.create_connection(address, timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        name = format_number(WHO, connection_number)
        self.turns = [[request.replace(WHO, name) for request in turn] for turn in turns]
        self.is_constant = not any(COUNTER in request for turn in turns for request in turn)
        # Start at the time in milliseconds, so that a later process never repeats a number: there is at most
        # one request per millisecond.
        self.count = time.time_ns() // 1_000_000
        self.turn, self.place = first_turn, 0
        self.is_new = True
        self.status, self.received = "", b""
        self.started_at = 0.0

    def start(self) -> None:
        self.started_at, self.status, self.place = time.perf_counter(), "", 0
        self.send()

    def send(self) -> None:
        request = self.turns[self.turn][self.place]
        if not self.is_constant:
            self.count += 1
            request = request.replace(COUNTER, format_number(COUNTER, self.count))
        if self.socket.send(request) != len(request):
            raise SystemExit("A request is larger than the socket takes at once.")
        if QUICK_ACK is not None:
            self.socket.setsockopt(socket.IPPROTO_TCP, QUICK_ACK, 1)

    def finish(self) -> tuple[str, int] | None:
        """Return the worst status and the last length after the operation's last response, else None."""
        response = self.receive()
        if response is None:
            return None
        self.status, self.place = max(self.status, response[0]), self.place + 1
        if self.place < len(self.turns[self.turn]):
            self.send()
            return None
        self.turn = (self.turn + 1) % len(self.turns)
        return self.status, response[1]

    def receive(self) -> tuple[str, int] | None:
        """Return the status and body length once the whole response has arrived, else None."""
        data = self.socket.recv(1 << 18)
        if not data:
            raise SystemExit("The server closed a connection.")
        data = self.received + data if self.received else data
        head_end = data.find(END)
        if head_end >= 0:
            status, length = data[9:12], parse_content_length(data, head_end)
            if len(data) >= head_end + len(END) + length:
                self.received = b""
                return status.decode(), length
        self.received = data
        return None


def format_number(mark: bytes, number: int) -> bytes:
    return f"{number % 10 ** len(mark):0{len(mark)}}".encode()


def parse_content_length(data: bytes, head_end: int) -> int:
    at = data.lower().find(LENGTH, 0, head_end) if data[9:12] != b"304" else -1
    return int(data[at + len(LENGTH) : data.find(b"\r\n", at)]) if at >= 0 else 0


class Tally:
    """Responses that arrived before the end."""

    def __init__(self, seconds: float) -> None:
        self.started_at = time.perf_counter()
        self.ends_at, self.last_at = self.started_at + seconds, 0.0
        self.times: list[float] = []
        self.responses: dict[tuple[str, int], int] = {}

    def record(self, connection: LoadConnection, response: tuple[str, int]) -> bool:
        """Record a response; return whether there is time for another request."""
        now = time.perf_counter()
        # Count at least one per connection: the first may be slow, because the server still imports its code.
        if now < self.ends_at or connection.is_new:
            self.last_at, connection.is_new = now, False
            self.times.append(now - connection.started_at)
            self.responses[response] = self.responses.get(response, 0) + 1
        return now < self.ends_at


def run(options: dict[str, Any]) -> dict[str, Any]:
    address, count = (options["host"], options["port"]), options["connections"]
    turns = [[request.encode() for request in turn] for turn in options["turns"]]
    connections = [
        LoadConnection(address, turns, number, number * len(turns) // count) for number in range(count)
    ]
    poll, by_descriptor = (
        select.epoll(),
        {connection.socket.fileno(): connection for connection in connections},
    )
    for number in by_descriptor:
        poll.register(number, select.EPOLLIN)
    cpu_before, tally = time.process_time(), Tally(options["seconds"])
    for connection in connections:
        connection.start()
    # Wait for the last response, so that no request is still running when the next measurement starts.
    while by_descriptor:
        for number, _ in poll.poll(1):
            connection = by_descriptor[number]
            response = connection.finish()
            if response is None:
                continue
            if tally.record(connection, response):
                connection.start()
            else:
                # The server may close an idle connection while others still wait for their last response.
                poll.unregister(number)
                del by_descriptor[number]
        if time.perf_counter() > tally.ends_at + LAST_RESPONSE_TIMEOUT:
            raise SystemExit("Some requests were not answered.")
    share = (time.process_time() - cpu_before) / (time.perf_counter() - tally.started_at)
    return summarize(tally, share)


def summarize(tally: Tally, share: float) -> dict[str, Any]:
    times, responses = sorted(tally.times), tally.responses
    statuses: dict[str, int] = {}
    for (status, _), count in responses.items():
        statuses[status] = statuses.get(status, 0) + count
    return {
        "requests": len(times),
        "seconds": max(tally.last_at, tally.ends_at) - tally.started_at,
        "p50": times[len(times) // 2] * 1e3,
        "p99": times[int(len(times) * 0.99)] * 1e3,
        "statuses": statuses,
        "length": max((length for _, length in responses), default=0),
        "share": share,
    }


if __name__ == "__main__":
    json.dump(run(json.load(sys.stdin)), sys.stdout)

"""A load generator in a process of its own: raw sockets kept alive, one request at a time on each.

Reads a JSON object from standard input (host, port, request, connections, seconds) and writes one to standard
output: requests, seconds, milliseconds at the 50th and 99th percentile, statuses, length of a body, and how
much of a core the generator itself used.
"""

import json
import select
import socket
import sys
import time
from typing import Any

END, LENGTH = b"\r\n\r\n", b"content-length: "


class Asker:
    """One connection."""

    def __init__(self, address: tuple[str, int], request: bytes) -> None:
        self.socket = socket.create_connection(address, timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.request = request
        self.heard = b""
        self.began = 0.0

    def ask(self) -> None:
        self.began = time.perf_counter()
        self.socket.send(self.request)

    def hear(self) -> tuple[str, int] | None:
        """Status and length of the body once all of it has come."""
        data = self.socket.recv(1 << 18)
        if not data:
            raise SystemExit("The server closed a connection.")
        data = self.heard + data if self.heard else data
        head = data.find(END)
        if head >= 0:
            status, length = data[9:12], length_in(data, head)
            if len(data) >= head + len(END) + length:
                self.heard = b""
                return status.decode(), length
        self.heard = data
        return None


def length_in(data: bytes, head: int) -> int:
    at = data.lower().find(LENGTH, 0, head) if data[9:12] != b"304" else -1
    return int(data[at + len(LENGTH) : data.find(b"\r\n", at)]) if at >= 0 else 0


def run(said: dict[str, Any]) -> dict[str, Any]:
    address, request = (said["host"], said["port"]), said["request"].encode()
    askers = [Asker(address, request) for _ in range(said["connections"])]
    poll, by_number = select.epoll(), {asker.socket.fileno(): asker for asker in askers}
    for number in by_number:
        poll.register(number, select.EPOLLIN)
    times: list[float] = []
    answers: dict[tuple[str, int], int] = {}
    worked, began = time.process_time(), time.perf_counter()
    until = began + said["seconds"]
    for asker in askers:
        asker.ask()
    # At least one answer each: the first request of all may find a server that still reads its code.
    while (now := time.perf_counter()) < until or len(times) < len(askers):
        for number, _ in poll.poll(1):
            asker = by_number[number]
            answer = asker.hear()
            if answer is not None:
                times.append(time.perf_counter() - asker.began)
                answers[answer] = answers.get(answer, 0) + 1
                asker.ask()
    took = now - began
    return summed(sorted(times), answers, took, (time.process_time() - worked) / took)


def summed(
    times: list[float], answers: dict[tuple[str, int], int], took: float, share: float
) -> dict[str, Any]:
    statuses: dict[str, int] = {}
    for (status, _), count in answers.items():
        statuses[status] = statuses.get(status, 0) + count
    return {
        "requests": len(times),
        "seconds": took,
        "p50": times[len(times) // 2] * 1e3,
        "p99": times[int(len(times) * 0.99)] * 1e3,
        "statuses": statuses,
        "length": max((length for _, length in answers), default=0),
        "share": share,
    }


if __name__ == "__main__":
    json.dump(run(json.load(sys.stdin)), sys.stdout)

"""A load generator in a process of its own: raw sockets kept alive, one request at a time on each.

Reads a JSON object from standard input (host, port, request, connections, seconds) and writes one to standard
output: requests, seconds, milliseconds at the 50th and 99th percentile, statuses, length of a body, and how
much of a core the generator itself used.

Instead of `request` there may be `turns`: operations that a connection carries out in turn, each a list of
requests sent one after the other; an operation is timed from its first byte to the last of its last answer,
and counted once, by the worst of its statuses. In a request `@who@` stands for the number of the connection,
`@counter@` for a number that never comes twice on it; both keep their length, so Content-Length stays true.
"""

import json
import select
import socket
import sys
import time
from typing import Any

END, LENGTH = b"\r\n\r\n", b"content-length: "
WHO, COUNTER = b"@who@", b"@counter@"
# Where there is such an option: a server that sends head and body apart would wait 40 ms between them.
QUICK_ACK: int | None = getattr(socket, "TCP_QUICKACK", None)
# Seconds for the last answers to come.
PATIENCE = 60
Turns = list[list[bytes]]


class Asker:
    """One connection."""

    def __init__(self, address: tuple[str, int], turns: Turns, who: int) -> None:
        self.socket = socket.create_connection(address, timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        name = number_like(WHO, who)
        self.turns = [[request.replace(WHO, name) for request in turn] for turn in turns]
        self.is_same = not any(COUNTER in request for turn in turns for request in turn)
        # A later process goes on beyond an earlier one: nobody is asked more than once in a millisecond.
        self.count = time.time_ns() // 1_000_000
        self.turn = self.place = 0
        self.is_new = True
        self.status, self.heard = "", b""
        self.began = 0.0

    def ask(self) -> None:
        self.began, self.status, self.place = time.perf_counter(), "", 0
        self.send()

    def send(self) -> None:
        request = self.turns[self.turn][self.place]
        if not self.is_same:
            self.count += 1
            request = request.replace(COUNTER, number_like(COUNTER, self.count))
        if self.socket.send(request) != len(request):
            raise SystemExit("A request is larger than the socket takes at once.")
        if QUICK_ACK is not None:
            self.socket.setsockopt(socket.IPPROTO_TCP, QUICK_ACK, 1)

    def finish(self) -> tuple[str, int] | None:
        """The worst status and the last length, once the last request of the operation is answered."""
        answer = self.hear()
        if answer is None:
            return None
        self.status, self.place = max(self.status, answer[0]), self.place + 1
        if self.place < len(self.turns[self.turn]):
            self.send()
            return None
        self.turn = (self.turn + 1) % len(self.turns)
        return self.status, answer[1]

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


def number_like(mark: bytes, number: int) -> bytes:
    return f"{number % 10 ** len(mark):0{len(mark)}}".encode()


def length_in(data: bytes, head: int) -> int:
    at = data.lower().find(LENGTH, 0, head) if data[9:12] != b"304" else -1
    return int(data[at + len(LENGTH) : data.find(b"\r\n", at)]) if at >= 0 else 0


class Tally:
    """What was answered in time."""

    def __init__(self, seconds: float) -> None:
        self.began = time.perf_counter()
        self.until, self.last = self.began + seconds, 0.0
        self.times: list[float] = []
        self.answers: dict[tuple[str, int], int] = {}

    def note(self, asker: Asker, answer: tuple[str, int]) -> bool:
        """Whether there is time for another."""
        now = time.perf_counter()
        # At least one each: the first request of all may find a server that still reads its code.
        if now < self.until or asker.is_new:
            self.last, asker.is_new = now, False
            self.times.append(now - asker.began)
            self.answers[answer] = self.answers.get(answer, 0) + 1
        return now < self.until


def run(said: dict[str, Any]) -> dict[str, Any]:
    address, turns = (said["host"], said["port"]), turns_in(said)
    askers = [Asker(address, turns, who) for who in range(said["connections"])]
    poll, by_number = select.epoll(), {asker.socket.fileno(): asker for asker in askers}
    for number in by_number:
        poll.register(number, select.EPOLLIN)
    worked, tally = time.process_time(), Tally(said["seconds"])
    for asker in askers:
        asker.ask()
    # Until the last answer has come, so that nothing is left over for whoever is asked next.
    while by_number:
        for number, _ in poll.poll(1):
            asker = by_number[number]
            answer = asker.finish()
            if answer is None:
                continue
            if tally.note(asker, answer):
                asker.ask()
            else:
                del by_number[number]
        if time.perf_counter() > tally.until + PATIENCE:
            raise SystemExit("Some requests were not answered.")
    share = (time.process_time() - worked) / (time.perf_counter() - tally.began)
    return summed(tally, share)


def turns_in(said: dict[str, Any]) -> Turns:
    turns = said["turns"] if "turns" in said else [[said["request"]]]
    return [[request.encode() for request in turn] for turn in turns]


def summed(tally: Tally, share: float) -> dict[str, Any]:
    times, answers = sorted(tally.times), tally.answers
    statuses: dict[str, int] = {}
    for (status, _), count in answers.items():
        statuses[status] = statuses.get(status, 0) + count
    return {
        "requests": len(times),
        "seconds": max(tally.last, tally.until) - tally.began,
        "p50": times[len(times) // 2] * 1e3,
        "p99": times[int(len(times) * 0.99)] * 1e3,
        "statuses": statuses,
        "length": max((length for _, length in answers), default=0),
        "share": share,
    }


if __name__ == "__main__":
    json.dump(run(json.load(sys.stdin)), sys.stdout)

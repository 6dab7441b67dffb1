"""Receivers of webhooks that answer with hostile framings, headers, sizes and speeds, on 127.0.0.1 only."""

import gzip
import socket
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count, islice, product

# Sent by each receiver that sends as much as it can.
FLOOD_BYTES = 6 * 1024**2
BLOCK = b"x" * 65_536
GZIP_BOMB = gzip.compress(bytes(FLOOD_BYTES))
# A receiver that is slow ends after so many seconds; senders have given up by then.
SLOW_SECONDS, DRIP_SECONDS = 40.0, 0.5
# As in the review: Python's parser raises OverflowError for this date.
OVERFLOW_DATE = "Mon, 01 Jan 2026 00:00:00 +99999999999999999999"
Parts = Iterator[bytes]


def flood(part: bytes = BLOCK) -> Parts:
    for _ in range(FLOOD_BYTES // len(part) + 1):
        yield part


def chunked(*parts: bytes) -> bytes:
    return b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(parts)


# --- framings ------------------------------------------------------------------------------------------


def send_chunk_size(size: bytes) -> Callable[[], Parts]:
    def send() -> Parts:
        yield chunked(size, b"\r\n")
        yield from flood()

    return send


def send_tiny_chunks() -> Parts:
    yield chunked()
    yield from flood(b"1\r\nx\r\n" * 1_000)


def send_chunk_extensions() -> Parts:
    yield chunked()
    yield from flood(b"1;" + b"e" * 60_000 + b"\r\nx\r\n")


def send_endless_extension() -> Parts:
    yield chunked(b"1;")
    yield from flood()


def send_endless_trailers() -> Parts:
    yield chunked(b"0\r\n")
    yield from flood(b"X-Trailer: 1\r\n" * 1_000)


def send_length(*lengths: str) -> Callable[[], Parts]:
    def send() -> Parts:
        yield "".join(f"Content-Length: {length}\r\n" for length in lengths).encode() + b"\r\n"
        yield from flood()

    return send


def send_both_framings() -> Parts:
    yield b"Content-Length: 3\r\n" + chunked(b"-1\r\n")
    yield from flood()


def send_without_length() -> Parts:
    yield b"\r\n"
    yield from flood()


def send_compressed() -> Parts:
    yield b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(GZIP_BOMB) + GZIP_BOMB


def send_strange_text() -> Parts:
    body = b"\x00\xff\xed\xa0\x80\xf0\x28\x8c\x28" * 300
    yield b"Content-Length: %d\r\n\r\n" % len(body) + body


# --- headers -------------------------------------------------------------------------------------------


def send_many_headers() -> Parts:
    yield from flood(b"X-A: 1\r\n" * 1_000)


def send_long_headers() -> Parts:
    yield from flood(b"X-A: " + b"y" * 60_000 + b"\r\n")


def send_endless_header() -> Parts:
    yield b"X-A: "
    yield from flood()


def send_folded_headers() -> Parts:
    yield b"X-A: 1\r\n"
    yield from flood(b" folded\r\n" * 1_000)


def send_strange_headers() -> Parts:
    yield b"X-\x00: \xff\xfe\r\n: \r\nno colon\r\nContent-Length: 0\r\n\r\n"


def send_header(name: str, value: str) -> Callable[[], Parts]:
    def send() -> Parts:
        yield f"{name}: {value}\r\nContent-Length: 0\r\n\r\n".encode("latin-1")

    return send


# --- speeds --------------------------------------------------------------------------------------------


def drip(part: bytes) -> Callable[[], Parts]:
    def send() -> Parts:
        for _ in range(int(SLOW_SECONDS / DRIP_SECONDS)):
            yield part
            time.sleep(DRIP_SECONDS)

    return send


def drip_body() -> Parts:
    yield b"Content-Length: 1000\r\n\r\n"
    yield from drip(b"x")()


def close_early() -> Parts:
    yield b"Content-Len"


def stall() -> Parts:
    time.sleep(SLOW_SECONDS)
    yield b"\r\n"


# What follows a status line, by name.
TAILS: Mapping[str, Callable[[], Parts]] = {
    "chunk -1": send_chunk_size(b"-1"),
    "chunk -2": send_chunk_size(b"-2"),
    "chunk -ffffffffffffffff": send_chunk_size(b"-ffffffffffffffff"),
    "chunk fffffffffffffff": send_chunk_size(b"fffffffffffffff"),
    "chunk of 60,000 digits": send_chunk_size(b"f" * 60_000),
    "chunk without a number": send_chunk_size(b"zz"),
    "tiny chunks": send_tiny_chunks,
    "chunk extensions": send_chunk_extensions,
    "endless extension": send_endless_extension,
    "endless trailers": send_endless_trailers,
    "length 10^12": send_length("1000000000000"),
    "length -1": send_length("-1"),
    "length of 5,000 digits": send_length("9" * 5_000),
    "two lengths": send_length("3", "4000000"),
    "length and chunks": send_both_framings,
    "no length": send_without_length,
    "gzip bomb": send_compressed,
    "strange text": send_strange_text,
    "many headers": send_many_headers,
    "long headers": send_long_headers,
    "endless header": send_endless_header,
    "folded headers": send_folded_headers,
    "strange headers": send_strange_headers,
    "Retry-After that overflows": send_header("Retry-After", OVERFLOW_DATE),
    "Retry-After of 10^300": send_header("Retry-After", "1" + "0" * 300),
    "Retry-After -1": send_header("Retry-After", "-1"),
    "Retry-After in the year 9999": send_header("Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"),
    "Retry-After of 60,000 characters": send_header("Retry-After", "Mon, " * 12_000),
    "Location": send_header("Location", "http://127.0.0.2/"),
    "close": close_early,
    "drip in the head": drip(b"X-A: 1\r\n"),
    "drip in the body": drip_body,
    "stall": stall,
}
# All of a response. These have no status, or more than one.
WHOLE: Mapping[str, Callable[[], Parts]] = {
    "nothing": lambda: iter([b""]),
    "HTTP/0.9": lambda: iter([b"<html>hello</html>\r\n"]),
    "HTTP/9.9": lambda: iter([b"HTTP/9.9 200 OK\r\n\r\n"]),
    "SSH": lambda: iter([b"SSH-2.0-OpenSSH_9.6\r\n"]),
    "status 42": lambda: iter([b"HTTP/1.1 42 X\r\n\r\n"]),
    "status 1000": lambda: iter([b"HTTP/1.1 1000 X\r\n\r\n"]),
    "status without a number": lambda: iter([b"HTTP/1.1 abc\r\n\r\n"]),
    "endless status": lambda: flood(b"HTTP/1.1 200 " + BLOCK),
    "endless 100": lambda: flood(b"HTTP/1.1 100 Continue\r\n\r\n" * 500),
    "100 with headers": lambda: flood(b"HTTP/1.1 100 Continue\r\n" + b"X-A: 1\r\n" * 90 + b"\r\n"),
    "101": lambda: iter([b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"]),
    "NUL bytes": lambda: flood(bytes(65_536)),
    "silence": stall,
    "drip of 100": drip(b"HTTP/1.1 100 Continue\r\n\r\n"),
}
SLOW = frozenset({"drip in the head", "drip in the body", "stall", "silence", "drip of 100"})
STATUSES = ("200 OK", "503 Busy", "302 Found", "404 No")


def list_answers() -> dict[str, Callable[[], Parts]]:
    """All answers by name: each tail with each status, and the whole ones."""
    answers: dict[str, Callable[[], Parts]] = dict(WHOLE)
    for (name, tail), status in product(TAILS.items(), STATUSES):
        answers[f"{status[:3]}, {name}"] = build_answer(status, tail)
    # The same statuses with other sizes of the reason, until there are 200.
    for number in islice(count(), 200 - len(answers)):
        answers[f"reason of {number} KiB"] = build_answer(f"500 {'r' * 1024 * number}", send_without_length)
    return answers


def build_answer(status: str, tail: Callable[[], Parts]) -> Callable[[], Parts]:
    def send() -> Parts:
        yield f"HTTP/1.1 {status}\r\n".encode()
        yield from tail()

    return send


class HostileReceivers:
    """A server with one path for each answer, which records when each was requested."""

    def __init__(self, answers: Mapping[str, Callable[[], Parts]]) -> None:
        self.answers = dict(answers)
        self.names = list(answers)
        self.requested: dict[str, list[float]] = defaultdict(list)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def url_of(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{self.names.index(name)}"

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    def answer(self, connection: socket.socket) -> None:
        with connection, suppress(OSError, ValueError, IndexError):
            connection.settimeout(SLOW_SECONDS)
            head = b""
            while b"\r\n\r\n" not in head and (data := connection.recv(65_536)):
                head += data
            name = self.names[int(head.split(b" ")[1].removeprefix(b"/"))]
            self.requested[name].append(time.monotonic())
            for part in self.answers[name]():
                connection.sendall(part)
            if name.endswith("close"):
                # A reset instead of an orderly end.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@contextmanager
def hostile_receivers(answers: Mapping[str, Callable[[], Parts]]) -> Iterator[HostileReceivers]:
    receivers = HostileReceivers(answers)
    try:
        yield receivers
    finally:
        receivers.listener.close()

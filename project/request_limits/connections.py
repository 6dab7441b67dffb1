"""Close connections of clients that stop sending a request or reading a response.

granian has a timeout for the head of a request, and none for its body and for the response. A read of a
body cannot be interrupted from Python, but it ends when the connection does. This module therefore looks at
the connections of its own process once a second (TCP_INFO, Linux only) and shuts down those without
progress. It assumes HTTP/1, where a connection carries one request at a time.
"""

import fcntl
import os
import socket
import struct
import termios
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Thread
from typing import NamedTuple

import structlog
from django.conf import settings

from project.request_limits.deadlines import RequestDeadlines, deadlines, start_periodic_thread

log = structlog.get_logger(__name__)

CHECK_SECONDS = 1.0
FD_FOLDER = "/proc/self/fd"
# Offsets in struct tcp_info of Linux: tcpi_bytes_acked and tcpi_bytes_received.
ACKED_OFFSET, RECEIVED_OFFSET, TCP_INFO_SIZE = 120, 128, 136
# A client that reads a response must read at least this fast.
MIN_BYTES_PER_SECOND = 4_096
# After the receiving side was closed, the server has this long to send its 408 response.
RESPONSE_SECONDS = 3.0
# A value for SO_LINGER: close with RST and discard what was not sent.
NO_LINGER = struct.pack("ii", 1, 0)

ConnectionKey = tuple[int, tuple[object, ...]]


class ByteCounts(NamedTuple):
    """Bytes that were acknowledged by the client, received from it, and are waiting to be sent to it."""

    acked: int
    received: int
    unsent: int


@dataclass(frozen=True)
class ConnectionProgress:
    """What was seen of a connection so far."""

    counts: ByteCounts
    # When the client last received something, or when its next request began.
    since: float
    is_in_request: bool = False
    # When the response that is being sent was first seen, and the acknowledged bytes at that time.
    sending_since: float = 0.0
    sending_from: int = 0
    # When the receiving side was closed.
    closed_at: float = 0.0

    def update(self, counts: ByteCounts, now: float) -> "ConnectionProgress":
        progress = replace(self, counts=counts)
        if counts.acked != self.counts.acked:
            progress = replace(progress, since=now, is_in_request=False)
        elif counts.received != self.counts.received and not self.is_in_request:
            progress = replace(progress, since=now, is_in_request=True)
        if not counts.unsent:
            return replace(progress, sending_since=0.0)
        if not self.sending_since:
            return replace(progress, sending_since=now, sending_from=counts.acked)
        return progress

    def is_reading_slowly(self, now: float, limit: float) -> bool:
        """Return whether the client read the response too slowly for `limit` seconds."""
        seconds = now - self.sending_since
        if not self.sending_since or seconds < limit:
            return False
        return self.counts.acked - self.sending_from < seconds * MIN_BYTES_PER_SECOND


class StalledConnections:
    """Finds and closes the connections of this process that make no progress."""

    def __init__(self, requests: RequestDeadlines) -> None:
        self._requests = requests
        self._seen: dict[ConnectionKey, ConnectionProgress] = {}

    def close_stalled(self) -> int:
        """Look at all connections once, and return how many were closed."""
        now, limit = time.monotonic(), float(settings.DRAMATIS_BODY_SECONDS)
        if self._requests.has_slow_request(limit - CHECK_SECONDS):
            # A response may still come: wait until the watchdog has ended the request.
            limit = float(settings.DRAMATIS_REQUEST_SECONDS) + RESPONSE_SECONDS
        seen, closed = {}, 0
        for client in list_client_sockets():
            with client, suppress(OSError):
                key = (os.fstat(client.fileno()).st_ino, client.getpeername())
                counts = get_byte_counts(client)
                known = self._seen.get(key) or ConnectionProgress(counts, now)
                progress = known.update(counts, now)
                seen[key] = close_if_stalled(client, progress, now, limit)
                closed += seen[key].closed_at != known.closed_at
        self._seen = seen
        if closed:
            log.warning("stalled_connections_closed", connections=closed)
        return closed


def close_if_stalled(
    client: socket.socket, progress: ConnectionProgress, now: float, limit: float
) -> ConnectionProgress:
    is_reading_slowly = progress.is_reading_slowly(now, limit)
    if progress.closed_at:
        if now - progress.closed_at >= RESPONSE_SECONDS:
            reset_connection(client)
        return progress
    if is_reading_slowly or (now - progress.since >= limit and progress.counts.unsent):
        reset_connection(client)
        return replace(progress, closed_at=now)
    if now - progress.since >= limit:
        # Close only the receiving side: the blocked read ends, and an error response can still be sent.
        client.shutdown(socket.SHUT_RD)
        return replace(progress, closed_at=now)
    if progress.sending_since and now - progress.sending_since >= limit:
        return replace(progress, sending_since=now, sending_from=progress.counts.acked)
    return progress


def reset_connection(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
    client.shutdown(socket.SHUT_RDWR)


def list_client_sockets() -> Iterator[socket.socket]:
    """Yield duplicates of the sockets of clients. A duplicate stays valid if the server closes its own."""
    sockets = list(open_own_sockets())
    ports = {one.getsockname()[1] for one in sockets if is_listening(one)}
    for one in sockets:
        if not is_listening(one) and get_local_port(one) in ports:
            yield one
        else:
            one.close()


def open_own_sockets() -> Iterator[socket.socket]:
    for name in os.listdir(FD_FOLDER):
        with suppress(OSError):
            if os.readlink(f"{FD_FOLDER}/{name}").startswith("socket:"):
                copy = socket.socket(fileno=os.dup(int(name)))
                if copy.family in {socket.AF_INET, socket.AF_INET6} and copy.type == socket.SOCK_STREAM:
                    yield copy
                else:
                    copy.close()


def is_listening(one: socket.socket) -> bool:
    return bool(one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def get_local_port(one: socket.socket) -> int:
    try:
        return int(one.getsockname()[1])
    except OSError:
        return 0


def get_byte_counts(client: socket.socket) -> ByteCounts:
    info = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_SIZE)
    (acked,) = struct.unpack_from("=Q", info, ACKED_OFFSET)
    (received,) = struct.unpack_from("=Q", info, RECEIVED_OFFSET)
    (unsent,) = struct.unpack("=i", fcntl.ioctl(client, termios.TIOCOUTQ, b"\0\0\0\0"))
    return ByteCounts(acked, received, unsent)


def start_closing() -> Thread | None:
    """Start the thread that closes stalled connections; None where the system does not show its sockets."""
    if not (os.path.isdir(FD_FOLDER) and hasattr(socket, "TCP_INFO")):
        log.warning("stalled_connections_unsupported")
        return None
    stalled = StalledConnections(deadlines)

    def close() -> None:
        stalled.close_stalled()

    return start_periodic_thread("stalled-connections", close, CHECK_SECONDS)

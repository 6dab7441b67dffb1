"""When a connection counts as stalled, and that only connections of the server are closed."""

import socket

import pytest

from project.request_limits.connections import (
    MIN_BYTES_PER_SECOND,
    ByteCounts,
    ConnectionProgress,
    StalledConnections,
    close_if_stalled,
)
from project.request_limits.deadlines import RequestDeadlines

LIMIT = 15.0


@pytest.fixture
def pair():
    """The server's and the client's end of a connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
        client.settimeout(2)
        with server, client:
            yield server, client


def follow(*counts: ByteCounts) -> ConnectionProgress:
    """One sample per second."""
    progress = ConnectionProgress(counts[0], 0.0)
    for second, one in enumerate(counts):
        progress = progress.update(one, float(second))
    return progress


def test_a_body_that_arrives_byte_by_byte_counts_from_its_start(pair):
    progress = follow(*(ByteCounts(0, 100 + second, 0) for second in range(17)))
    assert progress.since == 1.0
    assert close_if_stalled(pair[0], progress, 16.0, LIMIT).closed_at == 16.0


def test_a_request_on_a_connection_that_was_idle_counts_from_its_own_start(pair):
    idle = [ByteCounts(500, 100, 0)] * 14
    progress = follow(*idle, ByteCounts(500, 180, 0), ByteCounts(500, 180, 0))
    assert progress.since == 14.0
    assert close_if_stalled(pair[0], progress, 16.0, LIMIT).closed_at == 0.0


def test_a_reader_that_makes_little_progress_is_closed(pair):
    slow = follow(*(ByteCounts(10 * second, 100, 5_000) for second in range(17)))
    assert slow.is_reading_slowly(16.0, LIMIT)
    fast = follow(*(ByteCounts(2 * MIN_BYTES_PER_SECOND * second, 100, 5_000) for second in range(17)))
    assert not fast.is_reading_slowly(16.0, LIMIT)
    assert close_if_stalled(pair[0], fast, 16.0, LIMIT).closed_at == 0.0


def test_a_stalled_connection_is_closed_for_reading_and_can_still_be_answered(pair, settings):
    settings.DRAMATIS_BODY_SECONDS = 0
    server, client = pair
    stalled = StalledConnections(RequestDeadlines())
    assert stalled.close_stalled() >= 1
    assert server.recv(1) == b""
    server.sendall(b"408")
    assert client.recv(3) == b"408"


def test_connections_to_other_servers_are_left_alone(pair, settings):
    """The client's end is in the same process; its port is not one that the process listens on."""
    settings.DRAMATIS_BODY_SECONDS = 0
    server, client = pair
    StalledConnections(RequestDeadlines()).close_stalled()
    server.sendall(b"still here")
    assert client.recv(10) == b"still here"

"""Send requests to several servers concurrently and count the accepted ones."""

import http.client
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from threading import Barrier, Lock, Thread
from urllib.parse import urlsplit

THREADS_EACH = 4


@dataclass(frozen=True)
class RequestSpec:
    """One request to send."""

    path: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass
class Tally:
    """Counts of statuses by server and request."""

    counts: Counter[tuple[str, str, int]] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return self.counts.total()

    def accepted(self) -> dict[tuple[str, str, int], int]:
        return {key: count for key, count in self.counts.items() if key[2] < 400}

    def statuses(self) -> set[int]:
        return {status for _, _, status in self.counts}


def with_key(secret: str, *paths: str) -> list[RequestSpec]:
    return [RequestSpec(path, headers={"Authorization": f"Bearer {secret}"}) for path in paths]


def send_all(servers: Sequence[str], requests: list[RequestSpec], count: int) -> Tally:
    """Send so many requests, evenly distributed over threads that start together."""
    tally, lock = Tally(), Lock()
    barrier = Barrier(len(servers) * THREADS_EACH)
    share = -(-count // (len(servers) * THREADS_EACH))
    threads = [
        Thread(
            target=_send_requests,
            args=(
                server,
                list(islice(cycle(requests[place:] + requests[:place]), share)),
                barrier,
                tally,
                lock,
            ),
        )
        for server in servers
        for place in (number % len(requests) for number in range(THREADS_EACH))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tally


def _send_requests(
    server: str, requests: Sequence[RequestSpec], barrier: Barrier, tally: Tally, lock: Lock
) -> None:
    place = urlsplit(server)
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=30)
    barrier.wait(30)
    for request, status in _iterate_statuses(connection, requests):
        with lock:
            tally.counts[server, f"{request.method} {request.path}", status] += 1
    connection.close()


def _iterate_statuses(
    connection: http.client.HTTPConnection, requests: Sequence[RequestSpec]
) -> Iterator[tuple[RequestSpec, int]]:
    for request in requests:
        try:
            yield request, _status(connection, request)
        except (OSError, http.client.HTTPException):
            # A server that rejects a body unread may close the connection: retry once.
            connection.close()
            yield request, _status(connection, request)


def _status(connection: http.client.HTTPConnection, request: RequestSpec) -> int:
    connection.request(request.method, request.path, request.body, dict(request.headers))
    answer = connection.getresponse()
    answer.read()
    return answer.status

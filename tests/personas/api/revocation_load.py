"""Asks several servers at once, again and again, and counts whom they still let in."""

import http.client
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from threading import Barrier, Lock, Thread
from urllib.parse import urlsplit

THREADS_EACH = 4


@dataclass(frozen=True)
class Ask:
    """One request, the same for everybody who sends it."""

    path: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass
class Tally:
    """How often which server answered what."""

    seen: Counter[tuple[str, str, int]] = field(default_factory=Counter)

    @property
    def asked(self) -> int:
        return self.seen.total()

    def accepted(self) -> dict[tuple[str, str, int], int]:
        return {key: count for key, count in self.seen.items() if key[2] < 400}

    def statuses(self) -> set[int]:
        return {status for _, _, status in self.seen}


def with_key(secret: str, *paths: str) -> list[Ask]:
    return [Ask(path, headers={"Authorization": f"Bearer {secret}"}) for path in paths]


def ask_all(servers: Sequence[str], asks: list[Ask], count: int) -> Tally:
    """So many requests, shared out evenly; none is begun before all threads are ready."""
    tally, lock = Tally(), Lock()
    barrier = Barrier(len(servers) * THREADS_EACH)
    share = -(-count // (len(servers) * THREADS_EACH))
    threads = [
        Thread(
            target=_ask,
            args=(server, list(islice(cycle(asks[place:] + asks[:place]), share)), barrier, tally, lock),
        )
        for server in servers
        for place in (number % len(asks) for number in range(THREADS_EACH))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tally


def _ask(server: str, asks: Sequence[Ask], barrier: Barrier, tally: Tally, lock: Lock) -> None:
    place = urlsplit(server)
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=30)
    barrier.wait(30)
    for ask, status in _answers(connection, asks):
        with lock:
            tally.seen[server, f"{ask.method} {ask.path}", status] += 1
    connection.close()


def _answers(connection: http.client.HTTPConnection, asks: Sequence[Ask]) -> Iterator[tuple[Ask, int]]:
    for ask in asks:
        try:
            yield ask, _status(connection, ask)
        except (OSError, http.client.HTTPException):
            # Whoever refuses a body unread may hang up; then it is asked anew, and once.
            connection.close()
            yield ask, _status(connection, ask)


def _status(connection: http.client.HTTPConnection, ask: Ask) -> int:
    connection.request(ask.method, ask.path, ask.body, dict(ask.headers))
    answer = connection.getresponse()
    answer.read()
    return answer.status

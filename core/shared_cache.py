"""A least-recently-used cache that the threads of a process share, and loads that they share."""

from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from threading import Lock
from typing import Generic, TypeVar

from cachetools import LRUCache

K = TypeVar("K")
V = TypeVar("V")


class SharedLRUCache(LRUCache[K, V]):
    """Thread-safe variant of the least-recently-used cache of cachetools.

    `maxsize` is the number of values, or the sum of their sizes if `getsizeof` is given.
    """

    def __init__(self, maxsize: int, getsizeof: Callable[[V], float] | None = None) -> None:
        super().__init__(maxsize, getsizeof)
        self._lock = Lock()

    def find(self, key: K) -> V | None:
        with self._lock:
            return self.get(key)

    def store(self, key: K, value: V) -> None:
        with self._lock:
            self[key] = value

    def discard(self, key: K) -> None:
        with self._lock:
            if key in self:
                del self[key]

    def clear(self) -> None:
        with self._lock:
            super().clear()


# How many seconds a thread waits for a value that another thread loads, before it loads the value itself.
MAX_WAIT_SECONDS = 5


class SingleFlight(Generic[K, V]):
    """Request coalescing: of the threads that load the same value at once, one loads it and the others wait.

    The value was perhaps read before a waiting thread asked for it, so it can be as old as a cached one.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._flights: dict[K, Future[V]] = {}

    def load(self, key: K, load: Callable[[], V]) -> tuple[V, bool]:
        """Return the value, and whether another thread loaded it.

        If the load of the other thread fails or takes too long, this thread loads the value itself: an error
        can depend on the thread, such as a lost connection.
        """
        with self._lock:
            flight = self._flights.get(key)
            if flight is None:
                own = self._flights[key] = Future()
        if flight is not None:
            try:
                return flight.result(MAX_WAIT_SECONDS), True
            except (CancelledError, TimeoutError):
                return load(), False
        try:
            value = load()
            own.set_result(value)
            return value, False
        finally:
            # Has no effect after a result. Otherwise the waiting threads get CancelledError.
            own.cancel()
            with self._lock:
                del self._flights[key]

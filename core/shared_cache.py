"""A least-recently-used cache that the threads of a process share."""

from collections.abc import Callable
from threading import Lock
from typing import TypeVar

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

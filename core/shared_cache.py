"""A least-recently-used cache that the threads of a process share."""

from threading import Lock
from typing import TypeVar

from cachetools import LRUCache

K = TypeVar("K")
V = TypeVar("V")


class SharedLRUCache(LRUCache[K, V]):
    """Thread-safe variant of the least-recently-used cache of cachetools."""

    def __init__(self, maxsize: int) -> None:
        super().__init__(maxsize)
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

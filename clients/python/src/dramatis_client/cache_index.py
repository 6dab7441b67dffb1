"""Thread-safe in-memory index of cache entries."""

from collections import defaultdict
from concurrent.futures import Future
from threading import Lock

from dramatis_client.cache_entries import CacheEntry, PromptKey
from dramatis_client.io import Flight
from dramatis_client.settings import CallOptions

# Previous versions, so that a roll back needs no download. They expire: their text may have been erased.
MAX_PREVIOUS = 3
PREVIOUS_MAX_AGE = 3_600.0


class CacheIndex:
    """Hold each prompt's current entry, its previous versions, and its running refreshes and requests."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._current: dict[PromptKey, CacheEntry] = {}
        self._previous: defaultdict[PromptKey, list[CacheEntry]] = defaultdict(list)
        self._refreshing: set[PromptKey] = set()
        self._flights: dict[tuple[PromptKey, CallOptions], Flight] = {}
        # Prompts without an entry, for which the server was unavailable.
        self._failed: set[PromptKey] = set()

    def get(self, key: PromptKey) -> CacheEntry | None:
        return self._current.get(key)

    def put(self, key: PromptKey, entry: CacheEntry) -> None:
        with self._lock:
            replaced = self._current.get(key)
            self._current[key] = entry
            self._failed.discard(key)
            candidates = [replaced, *self._previous[key]] if replaced else self._previous[key]
            oldest = entry.checked_at - PREVIOUS_MAX_AGE
            previous = [
                one for one in candidates if one.prompt.etag != entry.prompt.etag and one.checked_at > oldest
            ]
            self._previous[key] = previous[:MAX_PREVIOUS]

    def list_by_etag(self, key: PromptKey, now: float) -> dict[str, CacheEntry]:
        """Return the entries that a 304 response may confirm, by ETag; the current one first."""
        with self._lock:
            entries = [*filter(None, [self._current.get(key)]), *self._previous.get(key, ())]
        return {entry.prompt.etag: entry for entry in entries if entry.can_revalidate(now)}

    def remove(self, key: PromptKey) -> None:
        with self._lock:
            self._current.pop(key, None)
            self._previous.pop(key, None)

    def clear(self) -> None:
        with self._lock:
            self._current.clear()
            self._previous.clear()

    def has_failed(self, key: PromptKey) -> bool:
        return key in self._failed

    def add_failure(self, key: PromptKey) -> None:
        with self._lock:
            self._failed.add(key)

    def begin_refresh(self, key: PromptKey) -> bool:
        """Return whether the caller may refresh: one refresh at a time per prompt."""
        with self._lock:
            if key in self._refreshing:
                return False
            self._refreshing.add(key)
            return True

    def end_refresh(self, key: PromptKey) -> None:
        with self._lock:
            self._refreshing.discard(key)

    def join_flight(self, key: PromptKey, options: CallOptions) -> tuple[Flight, bool]:
        """Return the running request for this prompt, and whether the caller has to make it.

        Calls with other options have a request of their own, so that nobody waits longer than they allow.
        """
        with self._lock:
            if flight := self._flights.get((key, options)):
                return flight, False
            flight = self._flights[key, options] = Future()
            # A running future cannot be cancelled by one of those who wait for it.
            flight.set_running_or_notify_cancel()
            return flight, True

    def end_flight(self, key: PromptKey, options: CallOptions) -> None:
        with self._lock:
            self._flights.pop((key, options), None)

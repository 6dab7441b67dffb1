"""Prompt cache in memory and on disk, with stale-while-revalidate and stale-if-error."""

import logging
from collections.abc import Callable
from dataclasses import replace

from dramatis_client import requests
from dramatis_client.cache_entries import (
    CacheAction,
    CacheEntry,
    PromptKey,
    compute_retry_time,
    create_entry,
    to_datetime,
)
from dramatis_client.cache_index import CacheIndex
from dramatis_client.disk_cache import DiskCache
from dramatis_client.io import DiskAccess, FlightResult, Plan, StartBackground, WaitForFlight
from dramatis_client.problems import DramatisError, Problem
from dramatis_client.prompts import Prompt, build_fallback_prompt
from dramatis_client.responses import Response
from dramatis_client.retries import send_with_retries
from dramatis_client.settings import NO_OPTIONS, CallOptions

log = logging.getLogger(__name__)

UNAUTHORIZED = 401
# The key may not read the prompt, it does not exist, or its text was erased: no cached copy may be used.
FINAL_STATUSES = frozenset({UNAUTHORIZED, 403, 404, 410})


class PromptCache:
    """Serve prompts from memory, the server or the disk, as the server's caching headers allow."""

    def __init__(self, disk: DiskCache | None, attempts: int, clock: Callable[[], float]) -> None:
        self.index = CacheIndex()
        self.disk = disk
        self.attempts = attempts
        self.clock = clock
        # Whether requests carry the ETags of the copies, so that an unchanged text is not downloaded again.
        self.is_revalidating = True

    def get_prompt(
        self, key: PromptKey, options: CallOptions, ttl: float | None, fallback: str | None
    ) -> Plan[Prompt]:
        """Return a prompt of the cache or the server, or the fallback if there is neither."""
        if fallback is not None and self.index.has_failed(key) and options.attempts is None:
            # The caller has a text, and has waited for retries before.
            options = replace(options, attempts=1)
        try:
            return (yield from self.find_prompt(key, options, ttl))
        except DramatisError as error:
            if fallback is None or is_final(error):
                raise
            log.warning("Using the fallback for %s on %s: %s", key.agent, key.channel, error)
            return build_fallback_prompt(
                key.agent, key.channel, key.label, fallback, to_datetime(self.clock())
            )

    def find_prompt(self, key: PromptKey, options: CallOptions, ttl: float | None) -> Plan[Prompt]:
        """Return a usable cached prompt at once; otherwise wait for the server."""
        entry, now = self.index.get(key), self.clock()
        action = entry.choose_action(now, ttl) if entry else CacheAction.FETCH
        if entry is None or action is CacheAction.FETCH:
            entry = yield from self.fetch_once(key, options)
            # The server has confirmed it during this call, or was unavailable.
            is_confirmed = entry.checked_at >= now
            return entry.to_prompt(self.clock(), None if is_confirmed else ttl)
        if action is CacheAction.SERVE_AND_REFRESH:
            yield from self.start_refresh(key)
        return entry.to_prompt(now, ttl)

    def start_refresh(self, key: PromptKey) -> Plan[None]:
        if self.index.begin_refresh(key):
            yield StartBackground(lambda: self.refresh(key), lambda: self.index.end_refresh(key))

    def fetch_once(self, key: PromptKey, options: CallOptions) -> Plan[CacheEntry]:
        """Fetch with single flight: concurrent callers wait for the first one's request."""
        while True:
            flight, is_leader = self.index.join_flight(key, options)
            if is_leader:
                break
            result: FlightResult = yield WaitForFlight(flight)
            if isinstance(result, Exception):
                raise result
            if result is not None:
                return result
        # None if this caller is cancelled meanwhile: then another one makes the request.
        outcome: FlightResult = None
        try:
            outcome = entry = yield from self.fetch(key, options)
            return entry
        except Exception as error:
            outcome = error
            raise
        finally:
            self.index.end_flight(key, options)
            flight.set_result(outcome)

    def refresh(self, key: PromptKey) -> Plan[None]:
        """Fetch in the background. A final refusal evicts the entry, so that the next call raises it."""
        try:
            yield from self.fetch(key, NO_OPTIONS)
        except DramatisError as error:
            log.warning("The prompt of %s on %s could not be refreshed: %s", key.agent, key.channel, error)

    def fetch(self, key: PromptKey, options: CallOptions) -> Plan[CacheEntry]:
        """Fetch from the server; if it is unavailable, return the cached copy (stale-if-error)."""
        entry = self.index.get(key) or (yield from self.load_from_disk(key))
        known_entries = self.index.list_by_etag(key, self.clock()) if self.is_revalidating else {}
        request = requests.prompt_request(*key, etags=known_entries)
        try:
            # No retries if there is a cached copy to return.
            attempts = options.attempts or (1 if entry else self.attempts)
            response = yield from send_with_retries(request, attempts, options.timeout)
            return (yield from self.store_response(key, response, known_entries))
        except DramatisError as error:
            if is_final(error):
                yield from self.evict(key, error)
                raise
            # Read again: another thread may have evicted the entry while this one waited.
            current = self.index.get(key)
            if current is None:
                self.index.add_failure(key)
                raise
            return self.serve_stale(key, current, error)

    def store_response(
        self, key: PromptKey, response: Response, known_entries: dict[str, CacheEntry]
    ) -> Plan[CacheEntry]:
        now = self.clock()
        if response.status == 304 and (known := known_entries.get(response.headers.get("etag", ""))):
            entry = known.revalidate(response, now)
        elif response.status == 200:
            entry = create_entry(response, now)
        else:
            raise response.to_error()
        is_new = (previous := self.index.get(key)) is None or previous.content is not entry.content
        self.index.put(key, entry)
        if self.disk and is_new:
            disk = self.disk
            yield DiskAccess(lambda: disk.write(key, entry))
        return entry

    def load_from_disk(self, key: PromptKey) -> Plan[CacheEntry | None]:
        if not self.disk:
            return None
        disk = self.disk
        entry: CacheEntry | None = yield DiskAccess(lambda: disk.read(key))
        if entry:
            self.index.put(key, entry)
        return entry

    def serve_stale(self, key: PromptKey, entry: CacheEntry, error: DramatisError) -> CacheEntry:
        """Return the cached copy and delay the next request to the server."""
        now = self.clock()
        # Another thread may have refreshed the entry meanwhile; then there is nothing to delay.
        delayed = entry if entry.is_fresh(now) else entry.delay_retry(compute_retry_time(now, error))
        self.index.put(key, delayed)
        return delayed

    def evict(self, key: PromptKey, error: DramatisError) -> Plan[None]:
        """Remove this prompt's entries; after 401 remove all entries of the API key."""
        if isinstance(error, Problem) and error.status == UNAUTHORIZED:
            yield from self.clear()
            return
        self.index.remove(key)
        if self.disk:
            disk = self.disk
            yield DiskAccess(lambda: disk.remove(key))

    def clear(self) -> Plan[None]:
        self.index.clear()
        if self.disk:
            yield DiskAccess(self.disk.clear)


def is_final(error: DramatisError) -> bool:
    """Return whether Dramatis refuses the prompt; a proxy's 404 is not a Problem, so nothing is evicted."""
    return isinstance(error, Problem) and error.status in FINAL_STATUSES

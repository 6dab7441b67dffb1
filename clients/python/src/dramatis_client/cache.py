"""Prompt cache in memory and on disk, with stale-while-revalidate and stale-if-error."""

import logging
from collections.abc import Callable

from dramatis_client import requests
from dramatis_client.cache_entries import CacheAction, CacheEntry, PromptKey, create_entry
from dramatis_client.cache_index import CacheIndex
from dramatis_client.disk_cache import DiskCache
from dramatis_client.io import DiskAccess, Plan, StartBackground
from dramatis_client.problems import DramatisError, Problem
from dramatis_client.prompts import Prompt
from dramatis_client.responses import Response
from dramatis_client.retries import send_with_retries

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

    def get_prompt(self, key: PromptKey) -> Plan[Prompt]:
        """Return a usable cached prompt at once; otherwise wait for the server."""
        entry, now = self.index.get(key), self.clock()
        action = entry.choose_action(now) if entry else CacheAction.FETCH
        if entry is None or action is CacheAction.FETCH:
            return (yield from self.fetch(key))
        if action is CacheAction.SERVE_AND_REFRESH and self.index.begin_refresh(key):
            yield StartBackground(lambda: self.refresh(key), lambda: self.index.end_refresh(key))
        return entry.to_prompt(now)

    def refresh(self, key: PromptKey) -> Plan[None]:
        """Fetch in the background. A final refusal evicts the entry, so that the next call raises it."""
        try:
            yield from self.fetch(key)
        except DramatisError as error:
            log.warning("The prompt of %s on %s is not kept any longer: %s", key.agent, key.channel, error)

    def fetch(self, key: PromptKey) -> Plan[Prompt]:
        """Fetch from the server; if it is unavailable, return the cached copy (stale-if-error)."""
        entry = self.index.get(key) or (yield from self.load_from_disk(key))
        known_entries = self.index.list_by_etag(key, self.clock())
        request = requests.prompt_request(*key, etags=known_entries)
        try:
            # No retries if there is a cached copy to return.
            response = yield from send_with_retries(request, 1 if entry else self.attempts)
            return (yield from self.store_response(key, response, known_entries))
        except DramatisError as error:
            if is_final(error):
                yield from self.evict(key, error)
                raise
            # Read again: another thread may have evicted the entry while this one waited.
            current = self.index.get(key)
            if current is None:
                raise
            return self.serve_stale(key, current, error)

    def store_response(
        self, key: PromptKey, response: Response, known_entries: dict[str, CacheEntry]
    ) -> Plan[Prompt]:
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
        return entry.to_prompt(now)

    def load_from_disk(self, key: PromptKey) -> Plan[CacheEntry | None]:
        if not self.disk:
            return None
        disk = self.disk
        entry: CacheEntry | None = yield DiskAccess(lambda: disk.read(key))
        if entry:
            self.index.put(key, entry)
        return entry

    def serve_stale(self, key: PromptKey, entry: CacheEntry, error: DramatisError) -> Prompt:
        """Return the cached copy and delay the next request to the server."""
        now = self.clock()
        retry_after = error.retry_after if isinstance(error, Problem) else None
        # Another thread may have refreshed the entry meanwhile; then there is nothing to delay.
        delayed = entry if entry.is_fresh(now) else entry.delay_retry(now, retry_after)
        self.index.put(key, delayed)
        return delayed.to_prompt(now)

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

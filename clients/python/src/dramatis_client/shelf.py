"""Copies in memory, shared by the threads of a process."""

from collections import defaultdict
from threading import Lock

from dramatis_client.copies import Copy, Name

# A label that is rolled back and forth finds its versions here; not for ever, as their words may be erased.
EARLIER = 3
EARLIER_LASTS = 3_600.0


class Shelf:
    """The copy of each prompt in use, a few versions it had before, and which are being refreshed."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._current: dict[Name, Copy] = {}
        self._earlier: defaultdict[Name, list[Copy]] = defaultdict(list)
        self._refreshing: set[Name] = set()

    def get(self, name: Name) -> Copy | None:
        return self._current.get(name)

    def put(self, name: Name, copy: Copy) -> None:
        with self._lock:
            before = self._current.get(name)
            self._current[name] = copy
            held = [before, *self._earlier[name]] if before else self._earlier[name]
            since = copy.checked_at - EARLIER_LASTS
            others = [one for one in held if one.prompt.etag != copy.prompt.etag and one.checked_at > since]
            self._earlier[name] = others[:EARLIER]

    def known(self, name: Name, now: float) -> dict[str, Copy]:
        """The copies that need not be sent again, by ETag; the current one first."""
        with self._lock:
            held = [*filter(None, [self._current.get(name)]), *self._earlier.get(name, ())]
        return {one.prompt.etag: one for one in held if one.is_worth_confirming(now)}

    def forget(self, name: Name) -> None:
        with self._lock:
            self._current.pop(name, None)
            self._earlier.pop(name, None)

    def forget_all(self) -> None:
        with self._lock:
            self._current.clear()
            self._earlier.clear()

    def begin_refresh(self, name: Name) -> bool:
        """Whether it is ours to refresh: one at a time for each prompt."""
        with self._lock:
            if name in self._refreshing:
                return False
            self._refreshing.add(name)
            return True

    def end_refresh(self, name: Name) -> None:
        with self._lock:
            self._refreshing.discard(name)

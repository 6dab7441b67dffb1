"""A prompt from memory, the server or the disk: who is asked when, and what an answer does to the copies."""

import logging
from collections.abc import Callable

from dramatis_client import requests
from dramatis_client.answers import Answer
from dramatis_client.copies import Copy, Name, Use, copy_of
from dramatis_client.disk import CopyFiles
from dramatis_client.effects import Behind, OnDisk, Plan
from dramatis_client.problems import DramatisError, Problem
from dramatis_client.prompts import Prompt
from dramatis_client.retrying import asked
from dramatis_client.shelf import Shelf

log = logging.getLogger(__name__)

BAD_KEY = 401
# The key is not good for it, it is not there, or its words were erased: then no copy may be used either.
FINAL = frozenset({BAD_KEY, 403, 404, 410})


class Keeper:
    """Keeps copies as the server's answers allow."""

    def __init__(self, files: CopyFiles | None, attempts: int, clock: Callable[[], float]) -> None:
        self.shelf = Shelf()
        self.files = files
        self.attempts = attempts
        self.clock = clock

    def prompt(self, name: Name) -> Plan[Prompt]:
        """At once where there is a copy that may be used; else when the server has answered."""
        copy, now = self.shelf.get(name), self.clock()
        use = copy.use(now) if copy else Use.ONLY_IF_AWAY
        if copy is None or use is Use.ONLY_IF_AWAY:
            return (yield from self.fetched(name))
        if use is Use.WHILE_ASKING and self.shelf.begin_refresh(name):
            yield Behind(lambda: self.refreshed(name), lambda: self.shelf.end_refresh(name))
        return copy.handed(now)

    def refreshed(self, name: Name) -> Plan[None]:
        """Behind the caller's back: what is refused here is raised when it is next asked for."""
        try:
            yield from self.fetched(name)
        except DramatisError as error:
            log.warning("The prompt of %s on %s is not kept any longer: %s", name.agent, name.channel, error)

    def fetched(self, name: Name) -> Plan[Prompt]:
        """From the server; while that is away, the last good copy."""
        copy = self.shelf.get(name) or (yield from self.found_on_disk(name))
        known = self.shelf.known(name, self.clock())
        request = requests.fetch(*name, etags=known)
        try:
            # Whoever has a copy does not wait for a second try.
            answer = yield from asked(request, 1 if copy else self.attempts)
            return (yield from self.taken(name, answer, known))
        except DramatisError as error:
            if is_final(error):
                yield from self.dropped(name, error)
                raise
            # None also when another thread has just been told that it may not be used any more.
            current = self.shelf.get(name)
            if current is None:
                raise
            return self.kept_up(name, current, error)

    def taken(self, name: Name, answer: Answer, known: dict[str, Copy]) -> Plan[Prompt]:
        now = self.clock()
        if answer.status == 304 and (held := known.get(answer.headers.get("etag", ""))):
            copy = held.confirmed(answer, now)
        elif answer.status == 200:
            copy = copy_of(answer, now)
        else:
            raise answer.failure()
        is_new = (before := self.shelf.get(name)) is None or before.content is not copy.content
        self.shelf.put(name, copy)
        if self.files and is_new:
            files = self.files
            yield OnDisk(lambda: files.write(name, copy))
        return copy.handed(now)

    def found_on_disk(self, name: Name) -> Plan[Copy | None]:
        if not self.files:
            return None
        files = self.files
        copy: Copy | None = yield OnDisk(lambda: files.read(name))
        if copy:
            self.shelf.put(name, copy)
        return copy

    def kept_up(self, name: Name, copy: Copy, error: DramatisError) -> Prompt:
        """The copy goes on; the server is left alone for a moment."""
        now = self.clock()
        retry_after = error.retry_after if isinstance(error, Problem) else None
        # Another thread may have had more luck meanwhile.
        failed = copy if copy.is_fresh(now) else copy.after_failure(now, retry_after)
        self.shelf.put(name, failed)
        return failed.handed(now)

    def dropped(self, name: Name, error: DramatisError) -> Plan[None]:
        """A bad key loses all its copies; otherwise this prompt's are gone."""
        if isinstance(error, Problem) and error.status == BAD_KEY:
            yield from self.forgotten()
            return
        self.shelf.forget(name)
        if self.files:
            files = self.files
            yield OnDisk(lambda: files.forget(name))

    def forgotten(self) -> Plan[None]:
        self.shelf.forget_all()
        if self.files:
            yield OnDisk(self.files.forget_all)


def is_final(error: DramatisError) -> bool:
    """Only in the server's own words: a proxy's "not found" takes nobody's prompt away."""
    return isinstance(error, Problem) and error.status in FINAL

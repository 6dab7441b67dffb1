"""Bots, programs and people who ask all the time, and note what they were told."""

import http.client
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from threading import Event, Lock, Thread
from typing import Any, Self
from urllib.parse import urlsplit

from tests.personas.api.revocation_load import RequestSpec

# Longer than anybody is to wait; whoever waits so long was not served.
PATIENCE = 8.0
# Who was not served asks again after so long: to be refused as often as can be would only heat the machine.
BREATH = 0.05
NO_ANSWER = 0
# A connection on which nobody spoke for so long is made anew: the server may let go of it at any moment.
IDLE = 5.0


@dataclass(frozen=True)
class Wish:
    """One request; what it is called, and the words it brings."""

    what: str
    ask: RequestSpec
    about: str = ""
    words: str = ""


@dataclass(frozen=True)
class Heard:
    """One answer, or that there was none."""

    wish: Wish
    began: float
    ended: float
    status: int = NO_ANSWER
    retry_after: str = ""
    request_id: str = ""
    digest: str = ""
    body: bytes = field(default=b"", repr=False)

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    @property
    def is_served(self) -> bool:
        return 200 <= self.status < 300


# Who asks, and for the how manieth time, to what is asked.
Wishes = Callable[[int, int], Wish]


class Crowd:
    """So many threads, each with a connection of its own; they ask while the gate is open."""

    def __init__(self, url: str, wishes: Wishes, threads: int, patience: float = PATIENCE) -> None:
        place, self._patience = urlsplit(url), patience
        self._host, self._port = str(place.hostname), place.port
        self.heard: list[Heard] = []
        self.served = 0
        self.is_open, self._stopping, self._lock = Event(), Event(), Lock()
        self._wishes, self._left = wishes, -1
        # How long each rests after every answer.
        self.rest = 0.0
        self._threads = [Thread(target=self._live, args=(number,)) for number in range(threads)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self.is_open.set()
        for thread in self._threads:
            thread.join(self._patience + 5)

    def wait_for(self, question: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not question() and time.monotonic() < deadline:
            time.sleep(0.01)
        return question()

    def serves(self, number: int, seconds: float) -> bool:
        """Whether so many have been served since the beginning, or will be soon."""
        return self.wait_for(lambda: self.served >= number, seconds)

    def ask(self, number: int, seconds: float = 60.0) -> list[Heard]:
        """So many requests from now on, and then silence; what was heard."""
        before = len(self.heard)
        self._left = number
        self.is_open.set()
        self.wait_for(lambda: len(self.heard) >= before + number, seconds)
        self.is_open.clear()
        self._left = -1
        return self.heard[before:]

    def _live(self, number: int) -> None:
        connection, last = self._connection(), time.monotonic()
        for turn in count():
            self.is_open.wait()
            if self._stopping.is_set():
                connection.close()
                return
            if not self._may_ask():
                time.sleep(0.005)
                continue
            if time.monotonic() - last > IDLE:
                connection.close()
            told = hear(connection, self._wishes(number, turn))
            last = time.monotonic()
            with self._lock:
                self.heard.append(told)
                self.served += told.is_served
            if told.status == NO_ANSWER:
                connection.close()
                connection = self._connection()
            if rest := self.rest if told.is_served else BREATH:
                time.sleep(rest)

    def _may_ask(self) -> bool:
        with self._lock:
            if self._left == 0:
                return False
            self._left -= self._left > 0
            return True

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._host, self._port, timeout=self._patience)


def hear(connection: http.client.HTTPConnection, wish: Wish) -> Heard:
    ask, began = wish.ask, time.monotonic()
    try:
        connection.request(ask.method, ask.path, ask.body, dict(ask.headers))
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException):
        return Heard(wish, began, time.monotonic())
    said = {name.lower(): value for name, value in answer.getheaders()}
    return Heard(
        wish,
        began,
        time.monotonic(),
        answer.status,
        said.get("retry-after", ""),
        said.get("x-request-id", ""),
        said.get("x-content-sha256", ""),
        b"" if wish.what == "fetch" else body,
    )


# --- what they ask for -----------------------------------------------------------------------------------


class Wanting:
    """The requests of one house."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts
        self.bot = {"Authorization": f"Bearer {facts['bot']}"}
        self.editor = {"Authorization": f"Bearer {facts['editor']}", "Content-Type": "application/json"}

    def fetch(self, place: int) -> Wish:
        agent = self.facts["agents"][place % len(self.facts["agents"])]
        path = f"/api/v1/agents/{agent}/prompt?channel={self.facts['channel']}"
        return Wish("fetch", RequestSpec(path, headers=self.bot), agent)

    def edit(self, place: int, words: str) -> Wish:
        """Each soul has one writer, so that nobody is told of somebody else's change."""
        slug = self.facts["souls"][place]
        headers = {**self.editor, "If-Match": "*"}
        ask = RequestSpec(f"/api/v1/souls/{slug}", "PATCH", headers, json.dumps({"text": words}).encode())
        return Wish("edit", ask, slug, words)

    def read(self) -> Wish:
        return Wish("read", RequestSpec("/api/v1/souls", headers=self.editor))

    def page(self) -> Wish:
        return Wish("page", RequestSpec("/w/harbour/agents/", headers={"Cookie": self.facts["cookie"]}))


def slowest(heard: Sequence[Heard], share: float = 0.99) -> float:
    """Seconds that all but the slowest hundredth took."""
    times = sorted(one.seconds for one in heard)
    return times[min(int(len(times) * share), len(times) - 1)]

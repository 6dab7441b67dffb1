"""Load generator: threads that send HTTP requests continuously and keep the responses."""

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

# Request timeout in seconds; a request that takes longer was not served.
TIMEOUT = 8.0
# Pause after a failed request: retrying without a pause would only load the machine.
RETRY_PAUSE = 0.05
NO_ANSWER = 0
# Connections idle for so long are opened again: the server may close them at any time.
IDLE = 5.0


@dataclass(frozen=True)
class LoadRequest:
    """One request; `target` and `text` are the edited record and its new text."""

    kind: str
    spec: RequestSpec
    target: str = ""
    text: str = ""


@dataclass(frozen=True)
class LoadResponse:
    """One response, or status 0 if there was none."""

    request: LoadRequest
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


# The number of the thread and of its request, to the request.
MakeRequest = Callable[[int, int], LoadRequest]


class LoadGenerator:
    """Threads with a connection each, which send requests while `is_open` is set."""

    def __init__(self, url: str, make_request: MakeRequest, threads: int, timeout: float = TIMEOUT) -> None:
        parts, self._timeout = urlsplit(url), timeout
        self._host, self._port = str(parts.hostname), parts.port
        self.responses: list[LoadResponse] = []
        self.served = 0
        self.is_open, self._stopping, self._lock = Event(), Event(), Lock()
        self._make_request, self._left = make_request, -1
        # Pause of each thread after every response.
        self.pause = 0.0
        # Whether every request opens a connection. The system then chooses the server's process each time.
        self.is_reconnecting = False
        self._threads = [Thread(target=self._run, args=(number,)) for number in range(threads)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self.is_open.set()
        for thread in self._threads:
            thread.join(self._timeout + 5)

    def wait_for(self, condition: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.01)
        return condition()

    def wait_until_served(self, number: int, seconds: float) -> bool:
        """Wait until so many requests have been served since the start."""
        return self.wait_for(lambda: self.served >= number, seconds)

    def send(self, number: int, seconds: float = 60.0) -> list[LoadResponse]:
        """Send so many requests, then stop; return the responses."""
        before = len(self.responses)
        self._left = number
        self.is_open.set()
        self.wait_for(lambda: len(self.responses) >= before + number, seconds)
        self.is_open.clear()
        self._left = -1
        return self.responses[before:]

    def _run(self, number: int) -> None:
        connection, last = self._connect(), time.monotonic()
        for turn in count():
            self.is_open.wait()
            if self._stopping.is_set():
                connection.close()
                return
            if not self._may_send():
                time.sleep(0.005)
                continue
            if self.is_reconnecting or time.monotonic() - last > IDLE:
                connection.close()
            response = send_request(connection, self._make_request(number, turn))
            last = time.monotonic()
            with self._lock:
                self.responses.append(response)
                self.served += response.is_served
            if response.status == NO_ANSWER:
                connection.close()
                connection = self._connect()
            if pause := self.pause if response.is_served else RETRY_PAUSE:
                time.sleep(pause)

    def _may_send(self) -> bool:
        with self._lock:
            if self._left == 0:
                return False
            self._left -= self._left > 0
            return True

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)


def send_request(connection: http.client.HTTPConnection, request: LoadRequest) -> LoadResponse:
    spec, began = request.spec, time.monotonic()
    try:
        connection.request(spec.method, spec.path, spec.body, dict(spec.headers))
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException):
        return LoadResponse(request, began, time.monotonic())
    headers = {name.lower(): value for name, value in response.getheaders()}
    return LoadResponse(
        request,
        began,
        time.monotonic(),
        response.status,
        headers.get("retry-after", ""),
        headers.get("x-request-id", ""),
        headers.get("dramatis-digest", ""),
        b"" if request.kind == "fetch" else body,
    )


# --- requests --------------------------------------------------------------------------------------------


class RequestFactory:
    """The requests to one installation."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts
        self.bot = {"Authorization": f"Bearer {facts['bot']}"}
        self.editor = {"Authorization": f"Bearer {facts['editor']}", "Content-Type": "application/json"}

    def fetch(self, index: int) -> LoadRequest:
        agent = self.facts["agents"][index % len(self.facts["agents"])]
        path = f"/api/v1/agents/{agent}/channels/{self.facts['channel']}/prompt"
        return LoadRequest("fetch", RequestSpec(path, headers=self.bot), agent)

    def edit(self, index: int, text: str) -> LoadRequest:
        """Edit a soul; each soul has one writer, so that there are no conflicts."""
        slug = self.facts["souls"][index]
        headers = {**self.editor, "If-Match": "*"}
        spec = RequestSpec(f"/api/v1/souls/{slug}", "PATCH", headers, json.dumps({"text": text}).encode())
        return LoadRequest("edit", spec, slug, text)

    def read(self) -> LoadRequest:
        return LoadRequest("read", RequestSpec("/api/v1/souls", headers=self.editor))

    def page(self) -> LoadRequest:
        headers = {"Cookie": self.facts["cookie"]}
        return LoadRequest("page", RequestSpec("/w/harbour/agents/", headers=headers))


def slowest(responses: Sequence[LoadResponse], share: float = 0.99) -> float:
    """The 99th percentile of the response times in seconds."""
    times = sorted(response.seconds for response in responses)
    return times[min(int(len(times) * share), len(times) - 1)]

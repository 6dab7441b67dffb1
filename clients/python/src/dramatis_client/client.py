"""Blocking client, safe to share between threads."""

import logging
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any, Self, TypeVar

import httpx

from dramatis_client.core import PRODUCTION, ClientCore, Files
from dramatis_client.io import (
    DiskAccess,
    NoResponse,
    Operation,
    Plan,
    Send,
    SendResult,
    Sleep,
    StartBackground,
)
from dramatis_client.prompts import Prompt
from dramatis_client.records import Memory, Skill
from dramatis_client.requests import Request
from dramatis_client.transport import build_http_options, from_httpx_response, to_httpx_request

T = TypeVar("T")
log = logging.getLogger(__name__)
# Refreshes are short; more threads would only keep more connections open.
REFRESH_THREADS = 4


class Client:
    """Blocking client of one server with one API key. Threads may share it. Close it, or use it in `with`."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        cache_dir: str | Path | None = None,
        timeout: float = 5.0,
        attempts: int = 3,
    ) -> None:
        self._core = ClientCore(url, key, cache_dir, attempts)
        self._http = httpx.Client(**build_http_options(self._core, timeout))
        self._refreshers = ThreadPoolExecutor(REFRESH_THREADS, thread_name_prefix="dramatis-refresh")
        self._closing = Event()

    def __repr__(self) -> str:
        return f"Client({self._core.url!r})"

    def prompt(self, agent: str, channel: str, label: str = PRODUCTION) -> Prompt:
        """Return the labelled prompt, from the cache if it is fresh enough; raise only without a copy."""
        return self._run(self._core.prompt(agent, channel, label))

    def render(self, agent: str, channel: str, *, label: str = PRODUCTION, **facts: Any) -> Prompt:
        """Render the prompt with facts of this call; always requests the server."""
        return self._run(self._core.render(agent, channel, label, facts))

    def remember(self, text: str, *, agent: str | None = None, **facts: Any) -> Memory:
        """Propose a memory of one agent, or of all agents; retries create one record."""
        return self._run(self._core.remember(text, agent, facts))

    def complete_step(self, task: int, step: int, is_done: bool = True) -> dict[str, Any]:
        """Mark a step of a task, counted from 0, as done or open; return the task."""
        return self._run(self._core.complete_step(task, step, is_done))

    def skill(self, agent: str, name: str) -> Skill:
        """Return the full instructions of one of the agent's skills."""
        return self._run(self._core.skill(agent, name))

    def pull(self, agent: str) -> dict[str, str]:
        """Return the SKILL.md of each skill of the agent that was written on the server, by name."""
        return self._run(self._core.pull(agent))

    def report(self, prompt: Prompt, *, text: str | None = None, request_id: str = "") -> dict[str, Any]:
        """Report the digest of the text that was used: the prompt's, or `text` if the bot changed it."""
        return self._run(self._core.report(prompt, text, request_id))

    def push(self, source: str, files: Files, *, is_complete: bool = False) -> dict[str, Any]:
        """Push files by path; a complete push removes the source's other files."""
        return self._run(self._core.push(source, files, is_complete))

    def replay(self, ledger_id: int) -> dict[str, Any]:
        """Return the exact text that was served, checked against its recorded digest."""
        return self._run(self._core.replay(ledger_id))

    def diff(self, digest: str, against: str) -> dict[str, Any]:
        """Return what changed between two versions."""
        return self._run(self._core.diff(digest, against))

    def close(self) -> None:
        """Wait for running refreshes and start no more."""
        self._closing.set()
        self._refreshers.shutdown(cancel_futures=True)
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- running plans ---------------------------------------------------------------------------------

    def _run(self, plan: Plan[T]) -> T:
        if self._closing.is_set():
            raise RuntimeError("This client is closed.")
        return self._run_plan(plan)

    def _run_plan(self, plan: Generator[Operation, Any, T]) -> T:
        result: Any = None
        while True:
            try:
                operation = plan.send(result)
            except StopIteration as end:
                return_value: T = end.value
                return return_value
            result = self._perform(operation)

    def _perform(self, operation: Operation) -> Any:
        match operation:
            case Send(request):
                return self._send(request)
            case Sleep(seconds):
                return self._closing.wait(seconds)
            case DiskAccess(function):
                return function()
            case StartBackground(plan, on_done):
                return self._start_background(plan, on_done)

    def _send(self, request: Request) -> SendResult:
        try:
            return from_httpx_response(self._http.send(to_httpx_request(self._http, request)))
        except httpx.RequestError as error:
            return NoResponse(error)

    def _start_background(self, plan: Callable[[], Plan[Any]], on_done: Callable[[], None]) -> None:
        def finish(refresh: Future[Any]) -> None:
            on_done()
            if not refresh.cancelled() and (error := refresh.exception()):
                log.error("A refresh has failed.", exc_info=error)

        try:
            future = self._refreshers.submit(lambda: self._run_plan(plan()))
        except RuntimeError:
            # Another thread has closed the client meanwhile.
            on_done()
            return
        future.add_done_callback(finish)

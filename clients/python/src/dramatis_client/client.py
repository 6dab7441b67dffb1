"""The client for programs with threads, or with none."""

import logging
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any, Self, TypeVar

import httpx

from dramatis_client.core import PRODUCTION, Core, Files
from dramatis_client.effects import Behind, Effect, Lost, OnDisk, Outcome, Pause, Plan, Send
from dramatis_client.prompts import Prompt
from dramatis_client.records import Memory, Skill
from dramatis_client.requests import Request
from dramatis_client.wire import incoming, outgoing, settings

T = TypeVar("T")
log = logging.getLogger(__name__)
# Refreshes are short; more threads would only hold more connections.
REFRESHERS = 4


class Client:
    """One server and one key; may be shared by threads. Close it, or use it in `with`."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        cache_dir: str | Path | None = None,
        timeout: float = 5.0,
        attempts: int = 3,
    ) -> None:
        self._core = Core(url, key, cache_dir, attempts)
        self._http = httpx.Client(**settings(self._core, timeout))
        self._refreshers = ThreadPoolExecutor(REFRESHERS, thread_name_prefix="dramatis-refresh")
        self._closing = Event()

    def __repr__(self) -> str:
        return f"Client({self._core.url!r})"

    def prompt(self, agent: str, channel: str, label: str = PRODUCTION) -> Prompt:
        """The labelled prompt, from memory where that will do; raises only where there is no copy to use."""
        return self._run(self._core.prompt(agent, channel, label))

    def render(self, agent: str, channel: str, *, label: str = PRODUCTION, **facts: Any) -> Prompt:
        """The prompt with facts of this very call; always asked of the server."""
        return self._run(self._core.render(agent, channel, label, facts))

    def remember(self, text: str, *, agent: str | None = None, **facts: Any) -> Memory:
        """Propose a memory, of one agent or shared by all; retries make one record."""
        return self._run(self._core.remember(text, agent, facts))

    def tick(self, task: int, step: int, is_done: bool = True) -> dict[str, Any]:
        """Mark a step of a task, counted from 0, as done or open; gives the task."""
        return self._run(self._core.tick(task, step, is_done))

    def skill(self, agent: str, name: str) -> Skill:
        """The full instructions of one of the agent's skills."""
        return self._run(self._core.skill(agent, name))

    def report(self, prompt: Prompt, *, text: str | None = None, request_id: str = "") -> dict[str, Any]:
        """Tell by its digest what was really used: the prompt's words, or `text` if they were changed."""
        return self._run(self._core.report(prompt, text, request_id))

    def push(self, source: str, files: Files, *, is_complete: bool = False) -> dict[str, Any]:
        """Push files by path; a complete push lets go of those it does not name."""
        return self._run(self._core.push(source, files, is_complete))

    def replay(self, ledger_id: int) -> dict[str, Any]:
        """What was handed out, to the byte."""
        return self._run(self._core.replay(ledger_id))

    def diff(self, digest: str, against: str) -> dict[str, Any]:
        """What changed between two versions."""
        return self._run(self._core.diff(digest, against))

    def close(self) -> None:
        """Let refreshes that have begun end, and begin no more."""
        self._closing.set()
        self._refreshers.shutdown(cancel_futures=True)
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- carrying plans out ----------------------------------------------------------------------------

    def _run(self, plan: Plan[T]) -> T:
        if self._closing.is_set():
            raise RuntimeError("This client is closed.")
        return self._carried_out(plan)

    def _carried_out(self, plan: Generator[Effect, Any, T]) -> T:
        outcome: Any = None
        while True:
            try:
                effect = plan.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            outcome = self._done(effect)

    def _done(self, effect: Effect) -> Any:
        match effect:
            case Send(request):
                return self._sent(request)
            case Pause(seconds):
                return self._closing.wait(seconds)
            case OnDisk(work):
                return work()
            case Behind(plan, done):
                return self._begun(plan, done)

    def _sent(self, request: Request) -> Outcome:
        try:
            return incoming(self._http.send(outgoing(self._http, request)))
        except httpx.RequestError as error:
            return Lost(error)

    def _begun(self, plan: Callable[[], Plan[Any]], done: Callable[[], None]) -> None:
        def ended(refresh: Future[Any]) -> None:
            done()
            if not refresh.cancelled() and (error := refresh.exception()):
                log.error("A refresh has failed.", exc_info=error)

        try:
            future = self._refreshers.submit(lambda: self._carried_out(plan()))
        except RuntimeError:
            # Closed by another thread in this moment.
            done()
            return
        future.add_done_callback(ended)

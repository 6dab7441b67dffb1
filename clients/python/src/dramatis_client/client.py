"""Blocking client, safe to share between threads."""

import logging
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any, Self, TypeVar, Unpack

import httpx

from dramatis_client.core import PRODUCTION, ClientCore, Files, SkillSelection
from dramatis_client.facts import RenderFacts
from dramatis_client.io import (
    DiskAccess,
    NoResponse,
    Operation,
    Plan,
    Send,
    SendResult,
    Sleep,
    StartBackground,
    WaitForFlight,
)
from dramatis_client.prompts import Prompt
from dramatis_client.records import Memory, Skill
from dramatis_client.settings import CallOptions, load_settings
from dramatis_client.spans import set_span_attributes
from dramatis_client.transport import build_http_options, from_httpx_response, to_httpx_request

T = TypeVar("T")
log = logging.getLogger(__name__)
# Refreshes are short; more threads would only keep more connections open.
REFRESH_THREADS = 4


class Client:
    """Blocking client of one server with one API key. Threads may share it. Close it, or use it in `with`.

    Arguments that are not given are read from the environment: DRAMATIS_URL, DRAMATIS_KEY,
    DRAMATIS_CACHE_DIR, DRAMATIS_TIMEOUT and DRAMATIS_ATTEMPTS.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        cache_dir: str | Path | None = None,
        timeout: float | None = None,
        attempts: int | None = None,
    ) -> None:
        self._core = ClientCore(load_settings(url, key, cache_dir, timeout, attempts))
        self._http = httpx.Client(**build_http_options(self._core))
        self._refreshers = ThreadPoolExecutor(REFRESH_THREADS, thread_name_prefix="dramatis-refresh")
        self._closing = Event()

    def __repr__(self) -> str:
        return f"Client({self._core.url!r})"

    def get_prompt(
        self,
        agent: str,
        channel: str,
        *,
        label: str = PRODUCTION,
        version: int | None = None,
        fallback: str | None = None,
        ttl: float | None = None,
        timeout: float | None = None,
        attempts: int | None = None,
    ) -> Prompt:
        """Return the labelled prompt, from the cache if it is fresh enough; raise only without a copy.

        `version` asks for a version that the label points or pointed to. `fallback` is the text to use if
        there is no copy and the server is unavailable. `ttl` replaces the server's max-age, in seconds;
        0 asks the server at every call.
        """
        options = CallOptions(timeout, attempts)
        prompt = self._run(
            self._core.get_prompt(
                agent, channel, label=label, version=version, fallback=fallback, ttl=ttl, options=options
            )
        )
        set_span_attributes(prompt)
        return prompt

    def render(
        self,
        agent: str,
        channel: str,
        *,
        label: str = PRODUCTION,
        timeout: float | None = None,
        attempts: int | None = None,
        **facts: Unpack[RenderFacts],
    ) -> Prompt:
        """Render the prompt with facts of this call; always requests the server."""
        prompt = self._run(self._core.render(agent, channel, label, facts, CallOptions(timeout, attempts)))
        set_span_attributes(prompt)
        return prompt

    def remember(
        self,
        text: str,
        *,
        agent: str | None = None,
        timeout: float | None = None,
        attempts: int | None = None,
        **facts: Any,
    ) -> Memory:
        """Propose a memory of one agent, or of all agents; retries create one record."""
        return self._run(self._core.remember(text, agent, facts, CallOptions(timeout, attempts)))

    def complete_step(
        self,
        task: int,
        step: int,
        is_done: bool = True,
        *,
        timeout: float | None = None,
        attempts: int | None = None,
    ) -> dict[str, Any]:
        """Mark a step of a task, counted from 0, as done or open; return the task."""
        return self._run(self._core.complete_step(task, step, is_done, CallOptions(timeout, attempts)))

    def skill(
        self,
        agent: str,
        name: str,
        *,
        channel: str = "",
        label: str = "",
        timeout: float | None = None,
        attempts: int | None = None,
    ) -> Skill:
        """Return the full instructions of one of the agent's skills, as released.

        `channel` is required if the agent has several channels that the key may use.
        """
        return self._run(
            self._core.skill(agent, name, SkillSelection(channel, label), CallOptions(timeout, attempts))
        )

    def pull(
        self,
        agent: str,
        *,
        channel: str = "",
        label: str = "",
        timeout: float | None = None,
        attempts: int | None = None,
    ) -> dict[str, str]:
        """Return the SKILL.md of each released skill of the agent that was written on the server, by name.

        `channel` is required if the agent has several channels that the key may use.
        """
        return self._run(
            self._core.pull(agent, SkillSelection(channel, label), CallOptions(timeout, attempts))
        )

    def report(
        self,
        prompt: Prompt,
        *,
        text: str | None = None,
        skills: Mapping[str, str] | None = None,
        request_id: str = "",
        path: str = "",
        reason: str = "",
        session: str = "",
        timeout: float | None = None,
        attempts: int | None = None,
    ) -> dict[str, Any]:
        """Report the digest of the text that was used: the prompt's, or `text` if the bot changed it.

        `skills` are the texts of all SKILL.md files that the bot has pulled, by name. `path` is the loaded
        file, `reason` why it was loaded, and `session` the session of the bot.
        """
        facts = {"request_id": request_id, "path": path, "reason": reason, "session": session}
        return self._run(self._core.report(prompt, text, skills, facts, CallOptions(timeout, attempts)))

    def push(
        self,
        source: str,
        files: Files,
        *,
        is_complete: bool = False,
        timeout: float | None = None,
        attempts: int | None = None,
    ) -> dict[str, Any]:
        """Push files by path; a complete push removes the source's other files."""
        return self._run(self._core.push(source, files, is_complete, CallOptions(timeout, attempts)))

    def replay(
        self,
        ledger_id: int,
        *,
        timeout: float | None = None,
        attempts: int | None = None,
    ) -> dict[str, Any]:
        """Return the exact text that was served, checked against its recorded digest."""
        return self._run(self._core.replay(ledger_id, CallOptions(timeout, attempts)))

    def diff(
        self,
        digest: str,
        against: str,
        *,
        timeout: float | None = None,
        attempts: int | None = None,
    ) -> dict[str, Any]:
        """Return what changed between two versions."""
        return self._run(self._core.diff(digest, against, CallOptions(timeout, attempts)))

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
        # Closed in any case, so that others who wait for this plan go on if its caller is interrupted.
        with closing(plan):
            while True:
                try:
                    operation = plan.send(result)
                except StopIteration as end:
                    return_value: T = end.value
                    return return_value
                result = self._perform(operation)

    def _perform(self, operation: Operation) -> Any:
        match operation:
            case Send():
                return self._send(operation)
            case Sleep(seconds):
                return self._closing.wait(seconds)
            case DiskAccess(function):
                return function()
            case StartBackground(plan, on_done):
                return self._start_background(plan, on_done)
            case WaitForFlight(flight):
                return flight.result()

    def _send(self, operation: Send) -> SendResult:
        try:
            return from_httpx_response(self._http.send(to_httpx_request(self._http, operation)))
        except httpx.RequestError as error:
            return NoResponse(error)

    def _start_background(self, plan: Callable[[], Plan[Any]], on_done: Callable[[], None]) -> None:
        def finish(refresh: Future[Any]) -> None:
            on_done()
            if not refresh.cancelled() and (error := refresh.exception()):
                log.error("A refresh failed.", exc_info=error)

        try:
            future = self._refreshers.submit(lambda: self._run_plan(plan()))
        except RuntimeError:
            # Another thread has closed the client meanwhile.
            on_done()
            return
        future.add_done_callback(finish)

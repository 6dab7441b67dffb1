"""The client for programs with an event loop."""

import asyncio
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx

from dramatis_client.core import PRODUCTION, Core, Files
from dramatis_client.effects import Behind, Effect, Lost, OnDisk, Outcome, Pause, Plan, Send
from dramatis_client.prompts import Prompt
from dramatis_client.records import Memory, Skill
from dramatis_client.requests import Request
from dramatis_client.wire import incoming, outgoing, settings

T = TypeVar("T")


class AsyncClient:
    """One server and one key, in one event loop. Close it, or use it in `async with`."""

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
        self._http = httpx.AsyncClient(**settings(self._core, timeout))
        self._refreshes: set[asyncio.Task[Any]] = set()
        self._is_closed = False

    def __repr__(self) -> str:
        return f"AsyncClient({self._core.url!r})"

    async def prompt(self, agent: str, channel: str, label: str = PRODUCTION) -> Prompt:
        """The labelled prompt, from memory where that will do; raises only where there is no copy to use."""
        return await self._run(self._core.prompt(agent, channel, label))

    async def render(self, agent: str, channel: str, *, label: str = PRODUCTION, **facts: Any) -> Prompt:
        """The prompt with facts of this very call; always asked of the server."""
        return await self._run(self._core.render(agent, channel, label, facts))

    async def remember(self, text: str, *, agent: str | None = None, **facts: Any) -> Memory:
        """Propose a memory, of one agent or shared by all; retries make one record."""
        return await self._run(self._core.remember(text, agent, facts))

    async def tick(self, task: int, step: int, is_done: bool = True) -> dict[str, Any]:
        """Mark a step of a task, counted from 0, as done or open; gives the task."""
        return await self._run(self._core.tick(task, step, is_done))

    async def skill(self, agent: str, name: str) -> Skill:
        """The full instructions of one of the agent's skills."""
        return await self._run(self._core.skill(agent, name))

    async def report(
        self, prompt: Prompt, *, text: str | None = None, request_id: str = ""
    ) -> dict[str, Any]:
        """Tell by its digest what was really used: the prompt's words, or `text` if they were changed."""
        return await self._run(self._core.report(prompt, text, request_id))

    async def push(self, source: str, files: Files, *, is_complete: bool = False) -> dict[str, Any]:
        """Push files by path; a complete push lets go of those it does not name."""
        return await self._run(self._core.push(source, files, is_complete))

    async def replay(self, ledger_id: int) -> dict[str, Any]:
        """What was handed out, to the byte."""
        return await self._run(self._core.replay(ledger_id))

    async def diff(self, digest: str, against: str) -> dict[str, Any]:
        """What changed between two versions."""
        return await self._run(self._core.diff(digest, against))

    async def close(self) -> None:
        """End refreshes that have begun, and begin no more."""
        self._is_closed = True
        for task in self._refreshes:
            task.cancel()
        await asyncio.gather(*self._refreshes, return_exceptions=True)
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # --- carrying plans out ----------------------------------------------------------------------------

    async def _run(self, plan: Plan[T]) -> T:
        if self._is_closed:
            raise RuntimeError("This client is closed.")
        return await self._carried_out(plan)

    async def _carried_out(self, plan: Generator[Effect, Any, T]) -> T:
        outcome: Any = None
        while True:
            try:
                effect = plan.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            outcome = await self._done(effect)

    async def _done(self, effect: Effect) -> Any:
        match effect:
            case Send(request):
                return await self._sent(request)
            case Pause(seconds):
                return await asyncio.sleep(seconds)
            case OnDisk(work):
                return await asyncio.to_thread(work)
            case Behind(plan, done):
                return self._begun(plan, done)

    async def _sent(self, request: Request) -> Outcome:
        try:
            return incoming(await self._http.send(outgoing(self._http, request)))
        except httpx.RequestError as error:
            return Lost(error)

    def _begun(self, plan: Callable[[], Plan[Any]], done: Callable[[], None]) -> None:
        def ended(task: asyncio.Task[Any]) -> None:
            self._refreshes.discard(task)
            done()

        task = asyncio.create_task(self._carried_out(plan()))
        self._refreshes.add(task)
        task.add_done_callback(ended)

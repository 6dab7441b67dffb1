"""One interface for both clients, so that every test runs with both."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dramatis_client import AsyncClient, Client, Prompt

KEY = "drm_bot_" + "k" * 36


class BlockingDriver:
    """Driver of the blocking client."""

    def __init__(self, url: str, key: str = KEY, **options: Any) -> None:
        self.client = Client(url, key, **options)

    def call(self, method: str, *args: Any, **facts: Any) -> Any:
        return getattr(self.client, method)(*args, **facts)

    def prompt(self, *name: str, **options: Any) -> Prompt:
        prompt: Prompt = self.call("get_prompt", *(name or ("pilot", "deck")), **options)
        return prompt

    def wait_for_refreshes(self) -> None:
        """Wait until no refresh is running."""
        index = self.client._core.cache.index
        deadline = time.monotonic() + 60
        while index._refreshing and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not index._refreshing

    def close(self) -> None:
        self.client.close()


class AsyncDriver:
    """Driver of the asyncio client, in its own event loop."""

    def __init__(self, url: str, key: str = KEY, **options: Any) -> None:
        self.runner = asyncio.Runner()
        # A separate thread, because the browser tests leave an idle event loop in the main thread.
        self.thread = ThreadPoolExecutor(1)
        self.client = AsyncClient(url, key, **options)

    def call(self, method: str, *args: Any, **facts: Any) -> Any:
        async def call_method() -> Any:
            return await getattr(self.client, method)(*args, **facts)

        return self.run(call_method())

    def prompt(self, *name: str, **options: Any) -> Prompt:
        prompt: Prompt = self.call("get_prompt", *(name or ("pilot", "deck")), **options)
        return prompt

    def wait_for_refreshes(self) -> None:
        async def wait() -> None:
            async with asyncio.timeout(60):
                while self.client._refreshes:
                    await asyncio.sleep(0.01)

        self.run(wait())

    def close(self) -> None:
        self.run(self.client.close())
        self.thread.submit(self.runner.close).result()
        self.thread.shutdown()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.thread.submit(self.runner.run, coroutine).result()


Driver = BlockingDriver | AsyncDriver
ClientFactory = Callable[..., Driver]


def set_clock(driver: Driver, now: float) -> None:
    """Set the client's clock."""
    core = driver.client._core
    core.clock = core.cache.clock = lambda: now

"""Both clients behind one face, so that every test asks both the same."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dramatis_client import AsyncClient, Client, Prompt

KEY = "drm_bot_" + "k" * 36


class Blocking:
    """The client for threads."""

    def __init__(self, url: str, key: str = KEY, **options: Any) -> None:
        self.client = Client(url, key, **options)

    def call(self, verb: str, *args: Any, **facts: Any) -> Any:
        return getattr(self.client, verb)(*args, **facts)

    def prompt(self, *name: str) -> Prompt:
        prompt: Prompt = self.call("prompt", *(name or ("pilot", "deck")))
        return prompt

    def settle(self) -> None:
        """Wait until nothing is being refreshed."""
        shelf = self.client._core.keeper.shelf
        deadline = time.monotonic() + 15
        while shelf._refreshing and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not shelf._refreshing

    def close(self) -> None:
        self.client.close()


class Looping:
    """The client for event loops, in a loop of its own."""

    def __init__(self, url: str, key: str = KEY, **options: Any) -> None:
        self.runner = asyncio.Runner()
        # Beside the browser's loop, which may stand still in this one.
        self.thread = ThreadPoolExecutor(1)
        self.client = AsyncClient(url, key, **options)

    def call(self, verb: str, *args: Any, **facts: Any) -> Any:
        async def called() -> Any:
            return await getattr(self.client, verb)(*args, **facts)

        return self.run(called())

    def prompt(self, *name: str) -> Prompt:
        prompt: Prompt = self.call("prompt", *(name or ("pilot", "deck")))
        return prompt

    def settle(self) -> None:
        async def settled() -> None:
            async with asyncio.timeout(15):
                while self.client._refreshes:
                    await asyncio.sleep(0.01)

        self.run(settled())

    def close(self) -> None:
        self.run(self.client.close())
        self.thread.submit(self.runner.close).result()
        self.thread.shutdown()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.thread.submit(self.runner.run, work).result()


Driver = Blocking | Looping
Make = Callable[..., Driver]


def at(driver: Driver, moment: float) -> None:
    """Set the client's clock."""
    core = driver.client._core
    core.clock = core.keeper.clock = lambda: moment

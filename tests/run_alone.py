"""Pytest plugin: tests marked `alone` run before the other processes of a parallel run begin.

They measure how processes share the processors, so other tests beside them would change the result.
"""

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

# A process that crashes in such a test does not report its end, so the others go on after this time.
WAIT_SECONDS = 600.0


class LoneTests:
    """The tests of this run that are marked `alone`. A file has one byte for each that has ended."""

    def __init__(self, items: Sequence[pytest.Item], ended: Path) -> None:
        self.number, self.ended = sum(is_alone(item) for item in items), ended

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if not is_alone(item):
            self.wait()
            return (yield)
        try:
            return (yield)
        finally:
            with self.ended.open("ab") as file:
                file.write(b".")

    def wait(self) -> None:
        """Wait until all of them have ended."""
        deadline = time.monotonic() + WAIT_SECONDS
        while self.number and time.monotonic() < deadline:
            if self.ended.exists() and self.ended.stat().st_size >= self.number:
                self.number = 0
            else:
                time.sleep(0.1)


def is_alone(item: pytest.Item) -> bool:
    return item.get_closest_marker("alone") is not None


def pytest_collection_finish(session: pytest.Session) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        # Each process of a run has its own folder in the run's folder, which is deleted at its end.
        ended = Path(os.environ["DRAMATIS_VAR"]).parent / "alone-ended"
        session.config.pluginmanager.register(LoneTests(session.items, ended))

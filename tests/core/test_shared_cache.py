"""Loads that threads share: one loads, the others wait, and an error is not shared."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from core import shared_cache
from core.shared_cache import SingleFlight


class SlowLoad:
    """A load that waits until it may finish, and fails if it is told to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.count = error, 0
        self.began, self.may_finish = Event(), Event()

    def __call__(self) -> str:
        self.count += 1
        self.began.set()
        assert self.may_finish.wait(60)
        if self.error:
            raise self.error
        return "slow"


def run_second(
    flight: SingleFlight[str, str],
    first: SlowLoad,
    second: Callable[[], str],
    *,
    is_first_released: bool = True,
) -> tuple[str, bool]:
    """Begin a load, begin a second one for the same key while it runs, and return the second result."""
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(flight.load, "key", first)
        assert first.began.wait(60)
        two = pool.submit(flight.load, "key", second)
        if is_first_released:
            first.may_finish.set()
        try:
            return two.result(60)
        finally:
            first.may_finish.set()
            one.exception(60)


def test_a_second_thread_gets_the_value_of_the_first() -> None:
    flight: SingleFlight[str, str] = SingleFlight()
    first = SlowLoad()
    value, is_shared = run_second(flight, first, lambda: "own")
    # The second thread may begin after the first has finished; then it loads the value itself.
    assert (value, is_shared) in {("slow", True), ("own", False)}
    assert flight.load("key", lambda: "later") == ("later", False)


def test_other_keys_do_not_wait() -> None:
    flight: SingleFlight[str, str] = SingleFlight()
    first = SlowLoad()
    with ThreadPoolExecutor(1) as pool:
        one = pool.submit(flight.load, "key", first)
        assert first.began.wait(60)
        assert flight.load("other", lambda: "own") == ("own", False)
        first.may_finish.set()
        assert one.result(60) == ("slow", False)


def test_an_error_is_not_shared() -> None:
    flight: SingleFlight[str, str] = SingleFlight()
    first = SlowLoad(ValueError("lost connection"))
    assert run_second(flight, first, lambda: "own") == ("own", False)
    with pytest.raises(ValueError, match="lost"):
        flight.load("key", first)


def test_a_thread_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_cache, "MAX_WAIT_SECONDS", 0.05)
    flight: SingleFlight[str, str] = SingleFlight()
    assert run_second(flight, SlowLoad(), lambda: "own", is_first_released=False) == ("own", False)

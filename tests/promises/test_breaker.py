"""R6 without a server: after the pause the circuit breaker lets a single caller try the broker."""

import pytest

from core.circuit_breaker import MAX_FAILURES, OPEN_SECONDS, CircuitBreaker

pytestmark = pytest.mark.promise("R6")


@pytest.fixture
def clock() -> list[float]:
    return [100.0]


@pytest.fixture
def breaker(clock) -> CircuitBreaker:
    opened = CircuitBreaker(lambda: clock[0])
    for _ in range(MAX_FAILURES):
        assert opened.may_try()
        opened.record_failure()
    return opened


def tries_of(breaker: CircuitBreaker, callers: int = 8) -> int:
    return sum(breaker.may_try() for _ in range(callers))


def test_after_the_pause_one_caller_may_try(breaker, clock):
    assert tries_of(breaker) == 0
    clock[0] += OPEN_SECONDS
    assert tries_of(breaker) == 1
    breaker.record_failure()
    assert tries_of(breaker) == 0


def test_after_a_success_all_callers_may_try(breaker, clock):
    clock[0] += OPEN_SECONDS
    assert tries_of(breaker) == 1
    breaker.record_success()
    assert tries_of(breaker) == 8


@pytest.mark.planted
def test_a_breaker_that_lets_all_callers_try_is_found(breaker, clock, monkeypatch):
    monkeypatch.setattr(CircuitBreaker, "may_try", lambda self: not self.is_open)
    clock[0] += OPEN_SECONDS
    assert tries_of(breaker) > 1

"""I/O operations that a plan yields to its client (sans-I/O).

A plan is a generator: it yields operations and is resumed with their results. The two clients differ only in
how they perform these operations, with threads or with asyncio.
"""

from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from dramatis_client.cache_entries import CacheEntry
from dramatis_client.requests import Request
from dramatis_client.responses import Response

T = TypeVar("T")


@dataclass(frozen=True)
class Send:
    """Send a request; the result is a Response, or NoResponse. Without a timeout, the client's applies."""

    request: Request
    timeout: float | None = None


@dataclass(frozen=True)
class Sleep:
    seconds: float


@dataclass(frozen=True)
class DiskAccess:
    """Call a function that may block on the disk; the result is its return value."""

    function: Callable[[], Any]


@dataclass(frozen=True)
class StartBackground:
    """Run another plan in the background.

    `on_done` is called however the plan ends, even if it never started.
    """

    plan: Callable[[], "Plan[Any]"]
    on_done: Callable[[], None]


# What a shared request brought: an entry, the error to raise, or None if its caller gave up.
FlightResult: TypeAlias = CacheEntry | Exception | None
Flight: TypeAlias = "Future[FlightResult]"


@dataclass(frozen=True)
class WaitForFlight:
    """Wait for the request of another caller (single flight); the result is its FlightResult."""

    flight: Flight


@dataclass(frozen=True)
class NoResponse:
    """The request failed before a response arrived."""

    error: Exception


Operation: TypeAlias = Send | Sleep | DiskAccess | StartBackground | WaitForFlight
SendResult: TypeAlias = Response | NoResponse
Plan: TypeAlias = Generator[Operation, Any, T]

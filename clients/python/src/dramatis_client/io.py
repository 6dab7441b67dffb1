"""I/O operations that a plan yields to its client (sans-I/O).

A plan is a generator: it yields operations and is resumed with their results. The two clients differ only in
how they perform these operations, with threads or with asyncio.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from dramatis_client.requests import Request
from dramatis_client.responses import Response

T = TypeVar("T")


@dataclass(frozen=True)
class Send:
    """Send a request; the result is a Response, or NoResponse."""

    request: Request


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


@dataclass(frozen=True)
class NoResponse:
    """The request failed before a response arrived."""

    error: Exception


Operation: TypeAlias = Send | Sleep | DiskAccess | StartBackground
SendResult: TypeAlias = Response | NoResponse
Plan: TypeAlias = Generator[Operation, Any, T]

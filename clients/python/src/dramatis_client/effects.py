"""What a plan asks of whoever carries it out: the only places where threads and tasks differ."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from dramatis_client.answers import Answer
from dramatis_client.requests import Request

T = TypeVar("T")


@dataclass(frozen=True)
class Send:
    """Ask the server; the outcome is an Answer, or Lost."""

    request: Request


@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass(frozen=True)
class OnDisk:
    """Work that may wait for a disk; the outcome is what it returns."""

    work: Callable[[], Any]


@dataclass(frozen=True)
class Behind:
    """Start another plan and go on; `done` is called however it ends, also when it never began."""

    plan: Callable[[], "Plan[Any]"]
    done: Callable[[], None]


@dataclass(frozen=True)
class Lost:
    """No answer came."""

    why: Exception


Effect: TypeAlias = Send | Pause | OnDisk | Behind
Outcome: TypeAlias = Answer | Lost
Plan: TypeAlias = Generator[Effect, Any, T]

"""What an edit meant for prompts, for the answer to the one who made it: built at once, or still to come."""

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Echo:
    """Prompts that this request rebuilt, and those left to the workers."""

    built: int = 0
    pending: int = 0
    failed: int = 0


_current: ContextVar[Echo | None] = ContextVar("echo", default=None)


def listen() -> Echo:
    """Begin to count, for one request."""
    echo = Echo()
    _current.set(echo)
    return echo


def heard() -> Echo:
    """The counts of this request; outside of one they go nowhere."""
    return _current.get() or Echo()

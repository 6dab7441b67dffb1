"""What is wrong with a stored row, in words, and the verdict over many rows."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A bad row: its table, what a person calls it, and the reason."""

    table: str
    key: str
    reason: str

    def __str__(self) -> str:
        return f"{self.key}: {self.reason}"


@dataclass(frozen=True)
class FaultSummary:
    """How many rows were looked at, how many are bad, and the first of those."""

    checked: int
    bad: int = 0
    first: Fault | None = None

    @property
    def is_sound(self) -> bool:
        return not self.bad


def summarize_faults(judged: Iterable[Fault | None]) -> FaultSummary:
    """Count what a judge says of row after row, keeping none of them."""
    checked = bad = 0
    first = None
    for fault in judged:
        checked += 1
        if fault:
            bad += 1
            first = first or fault
    return FaultSummary(checked, bad, first)

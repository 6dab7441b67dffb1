"""Faults that verification finds in stored rows, and their summary over many rows."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A bad row: its table, its display name and the reason. The fields are published as JSON."""

    table: str
    key: str
    reason: str

    def __str__(self) -> str:
        return f"{self.key}: {self.reason}"


@dataclass(frozen=True)
class FaultSummary:
    """How many rows were checked, how many are bad, and the first bad one."""

    checked: int
    bad: int = 0
    first: Fault | None = None

    @property
    def is_sound(self) -> bool:
        return not self.bad


def summarize_faults(faults: Iterable[Fault | None]) -> FaultSummary:
    """Count the rows and faults of a stream in constant memory. None stands for a row without a fault."""
    checked = bad = 0
    first = None
    for fault in faults:
        checked += 1
        if fault:
            bad += 1
            first = first or fault
    return FaultSummary(checked, bad, first)

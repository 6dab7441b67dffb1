"""Result of a verification: rows per table, faults in the order found, and the duration."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from prompts.proof.faults import Fault

# Faults beyond this number are counted but not stored.
MAX_FAULTS = 50
# Rows between two calls of the progress callback.
PROGRESS_INTERVAL = 10_000

ProgressCallback = Callable[[str, int], None]


@dataclass
class WorkspaceVerification:
    """Result of verifying a workspace; sound if no row is bad."""

    rows: dict[str, int] = field(default_factory=dict)
    bad: int = 0
    faults: list[Fault] = field(default_factory=list)
    # Checks that could not be made on this machine; they do not affect the result.
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_sound(self) -> bool:
        return not self.bad

    @property
    def first(self) -> Fault | None:
        return self.faults[0] if self.faults else None

    @property
    def checked(self) -> int:
        return sum(self.rows.values())

    def to_json(self) -> dict[str, Any]:
        return {
            "is_sound": self.is_sound,
            "rows": self.rows,
            "checked": self.checked,
            "bad": self.bad,
            "faults": [vars(fault) for fault in self.faults],
            "notes": self.notes,
            "seconds": round(self.seconds, 3),
        }

    # --- collecting results -----------------------------------------------------------------------------

    def add_results(
        self, table: str, results: Iterable[Fault | None], progress: ProgressCallback | None = None
    ) -> None:
        """Count the results of a table, one per row (None or the row's fault), and keep the first faults."""
        checked = self.rows.get(table, 0)
        try:
            for fault in results:
                checked += 1
                if fault:
                    self.add_fault(fault)
                if progress and checked % PROGRESS_INTERVAL == 0:
                    progress(table, checked)
        except (TypeError, ValueError, AttributeError, LookupError) as error:
            # Raised only by a row with values of entirely wrong types; the rows after it are not checked.
            self.add_fault(
                Fault(table, f"row {checked + 1} of the {table}", f"it cannot be checked: {error!r}")
            )
        self.rows[table] = checked

    def add_fault(self, fault: Fault) -> None:
        self.bad += 1
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(fault)

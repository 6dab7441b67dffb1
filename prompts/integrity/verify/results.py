"""What a look at the record found: rows per table, faults with the first in front, and how long it took."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from prompts.proof.faults import Fault

# So many are told in full; the rest are counted.
MAX_FAULTS = 50
# Rows between two words about the progress.
PROGRESS_INTERVAL = 10_000

ProgressCallback = Callable[[str, int], None]


@dataclass
class WorkspaceVerification:
    """One look; sound when not a single row is bad."""

    rows: dict[str, int] = field(default_factory=dict)
    bad: int = 0
    faults: list[Fault] = field(default_factory=list)
    # What could not be looked at here; neither for nor against.
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

    def data(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "is_sound": self.is_sound,
            "rows": self.rows,
            "checked": self.checked,
            "bad": self.bad,
            "faults": [vars(fault) for fault in self.faults],
            "notes": self.notes,
            "seconds": round(self.seconds, 3),
        }

    # --- while it goes on -------------------------------------------------------------------------------

    def take(
        self, table: str, judged: Iterable[Fault | None], progress: ProgressCallback | None = None
    ) -> None:
        """Count what a judge says of row after row, keeping none of them but the first bad ones."""
        checked = self.rows.get(table, 0)
        try:
            for fault in judged:
                checked += 1
                if fault:
                    self.blame(fault)
                if progress and checked % PROGRESS_INTERVAL == 0:
                    progress(table, checked)
        except (TypeError, ValueError, AttributeError, LookupError) as error:
            # Only a row that is not of its table's kind at all gets as far; what comes after it is not seen.
            self.blame(Fault(table, f"row {checked + 1} of the {table}", f"it cannot be judged: {error!r}"))
        self.rows[table] = checked

    def blame(self, fault: Fault) -> None:
        self.bad += 1
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(fault)

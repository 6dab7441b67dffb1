"""Findings of `manage.py doctor`."""

from dataclasses import dataclass
from enum import StrEnum


class FindingState(StrEnum):
    """State of a finding; only FAIL means that the product does not work as documented."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class DoctorFinding:
    """Result of one check. `advice` tells the operator what to do."""

    name: str
    state: FindingState
    message: str
    advice: str = ""

    def to_json(self) -> dict[str, str]:
        """Return the finding for `doctor --json`, whose keys are stable."""
        return {"name": self.name, "state": self.state, "words": self.message, "advice": self.advice}


def report_ok(name: str, message: str) -> DoctorFinding:
    return DoctorFinding(name, FindingState.OK, message)


def report_warning(name: str, message: str, advice: str) -> DoctorFinding:
    return DoctorFinding(name, FindingState.WARN, message, advice)


def report_failure(name: str, message: str, advice: str) -> DoctorFinding:
    return DoctorFinding(name, FindingState.FAIL, message, advice)

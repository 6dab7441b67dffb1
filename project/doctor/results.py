"""Findings of `manage.py doctor`."""

from dataclasses import dataclass
from enum import StrEnum


class FindingState(StrEnum):
    """State of a finding; only FAIL means that the product does not work as documented."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    """Result of one check. `advice` tells the operator what to do."""

    name: str
    state: FindingState
    message: str
    advice: str = ""

    def to_json(self) -> dict[str, str]:
        """Return the finding for `doctor --json`, whose keys are stable."""
        return {"name": self.name, "state": self.state, "words": self.message, "advice": self.advice}


def report_ok(name: str, message: str) -> Finding:
    return Finding(name, FindingState.OK, message)


def report_warning(name: str, message: str, advice: str) -> Finding:
    return Finding(name, FindingState.WARN, message, advice)


def report_failure(name: str, message: str, advice: str) -> Finding:
    return Finding(name, FindingState.FAIL, message, advice)

"""What the doctor has to say of one thing."""

from dataclasses import asdict, dataclass
from enum import StrEnum


class FindingState(StrEnum):
    """How it stands; only the last keeps the product from doing what it promises."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at, how it stands, in words, and what to do."""

    name: str
    state: FindingState
    words: str
    advice: str = ""

    def data(self) -> dict[str, str]:
        return asdict(self)


def report_ok(name: str, words: str) -> Finding:
    return Finding(name, FindingState.OK, words)


def report_warning(name: str, words: str, advice: str) -> Finding:
    return Finding(name, FindingState.WARN, words, advice)


def report_failure(name: str, words: str, advice: str) -> Finding:
    return Finding(name, FindingState.FAIL, words, advice)

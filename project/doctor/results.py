"""What the doctor has to say of one thing."""

from dataclasses import asdict, dataclass
from enum import StrEnum


class State(StrEnum):
    """How it stands; only the last keeps the product from doing what it promises."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at, how it stands, in words, and what to do."""

    name: str
    state: State
    words: str
    advice: str = ""

    def data(self) -> dict[str, str]:
        return asdict(self)


def ok(name: str, words: str) -> Finding:
    return Finding(name, State.OK, words)


def warn(name: str, words: str, advice: str) -> Finding:
    return Finding(name, State.WARN, words, advice)


def fail(name: str, words: str, advice: str) -> Finding:
    return Finding(name, State.FAIL, words, advice)

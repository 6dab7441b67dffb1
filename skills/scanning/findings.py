"""The words scanning is spoken in: a finding for people, a hit for the machinery, a rule as a row."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from skills.scanning.prefilter import RulePrefilter, accept_any_text

Severity = Literal["block", "warn", "note"]
# What members type is flagged and never blocked, so for it every "block" is a "warn".
TextKind = Literal["context", "skill", "typed"]

ALL_TEXT_KINDS: frozenset[TextKind] = frozenset({"context", "skill", "typed"})
SKILL_TEXT_KINDS: frozenset[TextKind] = frozenset({"skill"})


@dataclass(frozen=True)
class Finding:
    """One thing a person should look at; line and column count from one, in code points."""

    rule: str
    severity: Severity
    line: int
    column: int
    excerpt: str
    message: str


class RuleMatch(NamedTuple):
    """Where a rule fits, and for a secret the part that no excerpt may show."""

    start: int
    end: int
    secret: tuple[int, int] | None = None


# Hits come in the order of the text, and looking for them takes time linear in it.
MatchFinder = Callable[[str], Iterator[RuleMatch]]


@dataclass(frozen=True)
class ScanRule:
    """What to look for, how grave it is, and what to tell the reader."""

    name: str
    severity: Severity
    message: str
    find: MatchFinder
    kinds: frozenset[TextKind] = ALL_TEXT_KINDS
    # What a glance at the text must have seen, and what is asked of it then, before the finder gets to work.
    needs: str = "text"
    may_find: RulePrefilter = accept_any_text

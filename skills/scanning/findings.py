"""Data types of the scanner: findings, rule matches and rules."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from skills.scanning.prefilter import RulePrefilter, accept_any_text

Severity = Literal["block", "warn", "note"]
# "typed" is text that members type, which is never blocked: a rule with the severity "block" only warns.
TextKind = Literal["context", "skill", "typed"]

ALL_TEXT_KINDS: frozenset[TextKind] = frozenset({"context", "skill", "typed"})
SKILL_TEXT_KINDS: frozenset[TextKind] = frozenset({"skill"})


@dataclass(frozen=True)
class Finding:
    """One problem for a user to review. Line and column count from 1, in code points."""

    rule: str
    severity: Severity
    line: int
    column: int
    excerpt: str
    message: str


class RuleMatch(NamedTuple):
    """The span of the text that a rule matches. `secret` is the part of it that excerpts must redact."""

    start: int
    end: int
    secret: tuple[int, int] | None = None


# Takes a text and yields the matches of a rule, ordered by position. Must run in linear time.
MatchFinder = Callable[[str], Iterator[RuleMatch]]


@dataclass(frozen=True)
class ScanRule:
    """A scan rule: finder, severity and message."""

    name: str
    severity: Severity
    message: str
    find: MatchFinder
    kinds: frozenset[TextKind] = ALL_TEXT_KINDS
    # The finder runs only if the text has the feature `needs` and the prefilter `may_find` accepts it.
    needs: str = "text"
    may_find: RulePrefilter = accept_any_text

"""The words scanning is spoken in: a finding for people, a hit for the machinery, a rule as a row."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from skills.scanning.prefilter import Gate, always

Severity = Literal["block", "warn", "note"]
# What members type is flagged and never blocked, so for it every "block" is a "warn".
Kind = Literal["context", "skill", "typed"]

EVERY_KIND: frozenset[Kind] = frozenset({"context", "skill", "typed"})
SKILLS_ONLY: frozenset[Kind] = frozenset({"skill"})


@dataclass(frozen=True)
class Finding:
    """One thing a person should look at; line and column count from one, in code points."""

    rule: str
    severity: Severity
    line: int
    column: int
    excerpt: str
    message: str


class Hit(NamedTuple):
    """Where a rule fits, and for a secret the part that no excerpt may show."""

    start: int
    end: int
    secret: tuple[int, int] | None = None


# Hits come in the order of the text, and looking for them takes time linear in it.
Finder = Callable[[str], Iterator[Hit]]


@dataclass(frozen=True)
class Rule:
    """What to look for, how grave it is, and what to tell the reader."""

    name: str
    severity: Severity
    message: str
    find: Finder
    kinds: frozenset[Kind] = EVERY_KIND
    # What a glance at the text must have seen, and what is asked of it then, before the finder gets to work.
    needs: str = "text"
    may_find: Gate = always

"""Runs the rules over a text and tells what they found, in order and bounded."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, islice

from skills.scanning.excerpts import Span, excerpt, middle, positions
from skills.scanning.findings import Finding, Hit, Kind, Rule, Severity
from skills.scanning.prefilter import glance
from skills.scanning.rules import RULES

LIMIT = 100
GRAVITY: dict[Severity, int] = {"block": 0, "warn": 1, "note": 2}
MORE = "More was found than is shown here."

Found = tuple[Rule, Hit]


def scan(text: str, *, kind: Kind = "context", rules: Sequence[Rule] = RULES) -> tuple[Finding, ...]:
    """What a person should look at before this text is used, in the order of the text."""
    look = glance(text)
    sights = look.sights
    asked = [rule for rule in rules if rule.needs in sights and kind in rule.kinds and rule.may_find(look)]
    # One more than is shown of each is enough to know the first ones of all, and that there are more.
    found = [(rule, hit) for rule in asked for hit in islice(rule.find(text), LIMIT + 1)]
    return told(text, found, kind) if found else ()


def is_blocked(findings: Iterable[Finding]) -> bool:
    """Whether the text must wait for a person."""
    return any(finding.severity == "block" for finding in findings)


def told(text: str, found: list[Found], kind: Kind) -> tuple[Finding, ...]:
    """Findings for hits; the gravest are kept, so that a flood of trifles hides nothing."""
    secrets = sorted(hit.secret for _, hit in found if hit.secret)
    ranked = sorted(
        without_noise(found, secrets), key=lambda pair: (GRAVITY[pair[0].severity], pair[1].start)
    )
    place, covered = positions(text), sorted(map(middle, secrets))
    made = [
        Finding(rule.name, said(rule, kind), *place(hit.start), excerpt(text, hit, covered), rule.message)
        for rule, hit in sorted(ranked[:LIMIT], key=lambda pair: pair[1].start)
    ]
    if left := ranked[LIMIT:]:
        # At the very end, so that the order holds; as grave as the gravest it stands for.
        made.append(Finding("more", said(left[0][0], kind), *place(len(text)), "", MORE))
    return tuple(made)


def without_noise(found: list[Found], secrets: list[Span]) -> list[Found]:
    """Without what is merely a part of a secret: the base64 of a key is told once, as a key."""
    starts = [start for start, _ in secrets]
    # How far any secret that began by then reaches; the first is for none.
    reach = [-1, *accumulate((end for _, end in secrets), max)]
    return [
        (rule, hit) for rule, hit in found if hit.secret or hit.end > reach[bisect_right(starts, hit.start)]
    ]


def said(rule: Rule, kind: Kind) -> Severity:
    return "warn" if kind == "typed" and rule.severity == "block" else rule.severity

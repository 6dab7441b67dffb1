"""Run the scan rules on a text and build a limited, ordered list of findings."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, islice

from skills.scanning.excerpts import (
    Span,
    build_excerpt,
    build_position_lookup,
    get_redacted_span,
    mask_spans,
)
from skills.scanning.findings import Finding, RuleMatch, ScanRule, Severity, TextKind
from skills.scanning.prefilter import extract_text_features
from skills.scanning.rules import SCAN_RULES, SECRET_RULES

MAX_FINDINGS = 100
SEVERITY_ORDER: dict[Severity, int] = {"block": 0, "warn": 1, "note": 2}
MORE_FINDINGS_MESSAGE = "There are more findings than shown here."

MatchedRule = tuple[ScanRule, RuleMatch]


def scan_text(
    text: str, *, kind: TextKind = "context", rules: Sequence[ScanRule] = SCAN_RULES
) -> tuple[Finding, ...]:
    """Return the findings for this text, ordered by position."""
    features = extract_text_features(text)
    feature_names = features.names
    applicable_rules = [
        rule
        for rule in rules
        if rule.needs in feature_names and kind in rule.kinds and rule.may_find(features)
    ]
    # MAX_FINDINGS + 1 matches per rule are enough to select MAX_FINDINGS and to know whether there are more.
    matches = [
        (rule, match) for rule in applicable_rules for match in islice(rule.find(text), MAX_FINDINGS + 1)
    ]
    return build_findings(text, matches, kind) if matches else ()


def has_blocking_finding(findings: Iterable[Finding]) -> bool:
    """Return whether any finding blocks the text until it is reviewed."""
    return any(finding.severity == "block" for finding in findings)


def mask_secrets(text: str) -> str:
    """Return the text with all secrets masked as in the excerpts of findings. Line numbers do not change."""
    features = extract_text_features(text)
    secrets = sorted(
        match.secret
        for rule in SECRET_RULES
        if rule.needs in features.names and rule.may_find(features)
        for match in rule.find(text)
        if match.secret
    )
    return mask_spans(text, sorted(map(get_redacted_span, secrets))) if secrets else text


def build_findings(text: str, matches: list[MatchedRule], kind: TextKind) -> tuple[Finding, ...]:
    """Convert matches to findings. If there are more than MAX_FINDINGS, keep the most severe."""
    secrets = sorted(match.secret for _, match in matches if match.secret)
    ranked = sorted(
        exclude_secret_parts(matches, secrets),
        key=lambda pair: (SEVERITY_ORDER[pair[0].severity], pair[1].start),
    )
    get_position, redacted_spans = build_position_lookup(text), sorted(map(get_redacted_span, secrets))
    findings = [
        Finding(
            rule.name,
            get_effective_severity(rule, kind),
            *get_position(match.start),
            build_excerpt(text, match, redacted_spans),
            rule.message,
        )
        for rule, match in sorted(ranked[:MAX_FINDINGS], key=lambda pair: pair[1].start)
    ]
    if omitted := ranked[MAX_FINDINGS:]:
        # One finding for all omitted ones. Its position is the end of the text, because findings are ordered
        # by position. Its severity is the highest severity of the omitted findings.
        findings.append(
            Finding(
                "more",
                get_effective_severity(omitted[0][0], kind),
                *get_position(len(text)),
                "",
                MORE_FINDINGS_MESSAGE,
            )
        )
    return tuple(findings)


def exclude_secret_parts(matches: list[MatchedRule], secrets: list[Span]) -> list[MatchedRule]:
    """Remove matches inside a secret: the base64 of a private key is reported only as a key."""
    starts = [start for start, _ in secrets]
    # Item n is the furthest end of the first n secrets; item 0 is -1.
    furthest_ends = [-1, *accumulate((end for _, end in secrets), max)]
    return [
        (rule, match)
        for rule, match in matches
        if match.secret or match.end > furthest_ends[bisect_right(starts, match.start)]
    ]


def get_effective_severity(rule: ScanRule, kind: TextKind) -> Severity:
    return "warn" if kind == "typed" and rule.severity == "block" else rule.severity

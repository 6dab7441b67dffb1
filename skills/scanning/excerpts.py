"""Position and excerpt of a finding: one short line with secrets redacted and hidden characters marked."""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence

from skills.scanning.characters import mark_hidden_characters
from skills.scanning.findings import RuleMatch

LINE_END_PATTERN = re.compile(r"\r\n?|\n")
LINE_CONTENT_PATTERN = re.compile(r"[^\r\n]+")
LINE_END_CHARACTERS = ("\r", "\n")
# In characters. Longer matches are cut; some context is shown before and after the match.
MAX_MATCH_LENGTH, CONTEXT_LENGTH, MAX_EXCERPT_LENGTH = 48, 12, 240
REDACTION_MARK = "•••"

Span = tuple[int, int]


def build_position_lookup(text: str) -> Callable[[int], tuple[int, int]]:
    """Build a function that maps an offset to line and column, both from 1. CRLF, LF and CR end a line."""
    starts = [0, *(match.end() for match in LINE_END_PATTERN.finditer(text))]

    def get_position(offset: int) -> tuple[int, int]:
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    return get_position


def get_redacted_span(secret: Span) -> Span:
    """Return the part of a secret to redact: all of a short secret, the middle of a long one."""
    start, end = secret
    length = end - start
    return (start, end) if length < 16 else (start + min(6, length // 4), end - 2)


def build_excerpt(text: str, match: RuleMatch, redacted_spans: Sequence[Span]) -> str:
    """Build a one-line excerpt around the match. `redacted_spans` are the parts of secrets to hide."""
    low, high = get_excerpt_window(text, match)
    excerpt = mark_hidden_characters(redact_text(text, low, high, redacted_spans))
    is_cut = high < match.end
    return truncate_excerpt(" ".join(excerpt.split()), is_cut=is_cut)


def get_excerpt_window(text: str, match: RuleMatch) -> Span:
    """Return the span of the excerpt: the match and some context on its line.

    A long match is cut, unless it contains a secret.
    """
    low = match.start
    while low > max(0, match.start - CONTEXT_LENGTH) and text[low - 1] not in LINE_END_CHARACTERS:
        low -= 1
    end = high = match.end if match.secret else min(match.end, match.start + MAX_MATCH_LENGTH)
    if end == match.end:
        while high < min(len(text), end + CONTEXT_LENGTH) and text[high] not in LINE_END_CHARACTERS:
            high += 1
    return low, high


def redact_text(text: str, low: int, high: int, redacted_spans: Sequence[Span]) -> str:
    """Return a span of the text with each secret in it redacted."""
    parts, position = [], low
    for start, end in redacted_spans:
        if end > position and start < high:
            parts += [text[position:start], REDACTION_MARK]
            position = end
    return "".join([*parts, text[position:high]])


def mask_spans(text: str, redacted_spans: Sequence[Span]) -> str:
    """Return the text with each span replaced by a mark on each of its lines, so that line numbers stay."""
    parts, position = [], 0
    for start, end in redacted_spans:
        parts += [
            text[position:start],
            LINE_CONTENT_PATTERN.sub(REDACTION_MARK, text[max(start, position) : end]),
        ]
        position = max(position, end)
    return "".join([*parts, text[position:]])


def truncate_excerpt(excerpt: str, *, is_cut: bool) -> str:
    """Limit the length without cutting inside a ⟦…⟧ mark."""
    if len(excerpt) <= MAX_EXCERPT_LENGTH:
        return f"{excerpt}…" if is_cut else excerpt
    truncated = excerpt[:MAX_EXCERPT_LENGTH]
    return (
        f"{truncated[: truncated.rfind('⟦')] if truncated.rfind('⟦') > truncated.rfind('⟧') else truncated}…"
    )

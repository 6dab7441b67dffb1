"""Split a version's text into rows of complete lines with the origins of each row. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from prompts.assembly.segments import Origin, Segment


@dataclass(frozen=True)
class OriginSpan:
    """A range of characters with a single origin."""

    start: int
    end: int
    section: str
    origin: Origin
    # The slot that produced or may replace this text.
    slot: str = ""


@dataclass
class TextRow:
    """One or more complete lines of text; a row has several origins only if one of its lines has several."""

    start: int
    end: int
    spans: list[OriginSpan] = field(default_factory=list)

    @property
    def origins(self) -> list[Origin]:
        """Distinct origins that are records or files; if there are none, the first layout or slot origin."""
        origins = list(dict.fromkeys(span.origin for span in self.spans))
        record_origins = [origin for origin in origins if origin.kind not in ("layout", "slot")]
        return record_origins or origins[:1]

    @property
    def slots(self) -> list[str]:
        return list(dict.fromkeys(span.slot for span in self.spans if span.slot))


def group_rows_by_section(segments: Sequence[Segment]) -> list[tuple[str, list[TextRow]]]:
    """Split the text into rows, grouped by section, in order."""
    rows = build_text_rows(
        "".join([segment.text for segment in segments]), merge_origin_spans(list_origin_spans(segments))
    )
    grouped = groupby(rows, key=lambda row: row.spans[0].section)
    return [(section, list(group)) for section, group in grouped]


def list_origin_spans(segments: Sequence[Segment]) -> Iterator[OriginSpan]:
    """Yield the range of each segment; a slot applies to all `span` segments from the one that names it."""
    at, slot, left = 0, "", 0
    for segment in segments:
        if not left:
            slot, left = segment.slot, segment.span
        left -= 1
        end = at + len(segment.text)
        yield OriginSpan(at, end, segment.section, segment.origin, slot)
        at = end


def merge_origin_spans(spans: Iterable[OriginSpan]) -> list[OriginSpan]:
    """Merge adjacent spans of the same origin, and drop empty ones."""
    merged: list[OriginSpan] = []
    for span in spans:
        if span.start == span.end:
            continue
        last = merged[-1] if merged else None
        if last and (last.section, last.origin, last.slot) == (span.section, span.origin, span.slot):
            merged[-1] = OriginSpan(last.start, span.end, span.section, span.origin, span.slot)
        else:
            merged.append(span)
    return merged


def build_text_rows(text: str, spans: Sequence[OriginSpan]) -> list[TextRow]:
    """Build one row per origin span; a row that would begin inside a line begins at the next line instead."""
    rows: list[TextRow] = []
    for span in spans:
        start = span.start
        if rows and text[start - 1] != "\n":
            start = extend_text_row(rows[-1], span, text)
        if start < span.end:
            rows.append(TextRow(start, span.end, [slice_origin_span(span, start, span.end)]))
    return rows


def extend_text_row(row: TextRow, span: OriginSpan, text: str) -> int:
    """Complete the row's last line with text of this span; return the offset where the next line starts."""
    line_end = text.find("\n", span.start, span.end)
    stop = span.end if line_end < 0 else line_end + 1
    if line_end != span.start:
        row.spans.append(slice_origin_span(span, span.start, stop))
    row.end = stop
    return stop


def slice_origin_span(span: OriginSpan, start: int, end: int) -> OriginSpan:
    return OriginSpan(start, end, span.section, span.origin, span.slot)

"""A version's text as rows to be read beside their origins: whole lines, each with who said them; pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from prompts.assembly.segments import Origin, Segment


@dataclass(frozen=True)
class OriginSpan:
    """Some characters of the text that came from one place."""

    start: int
    end: int
    section: str
    origin: Origin
    # The slot whose words these are, or that may replace them.
    slot: str = ""


@dataclass
class TextRow:
    """Whole lines; several origins only where one line has several."""

    start: int
    end: int
    spans: list[OriginSpan] = field(default_factory=list)

    @property
    def origins(self) -> list[Origin]:
        """Each once; words of the layout are named only where there are no others."""
        origins = list(dict.fromkeys(span.origin for span in self.spans))
        record_origins = [origin for origin in origins if origin.kind not in ("layout", "slot")]
        return record_origins or origins[:1]

    @property
    def slots(self) -> list[str]:
        return list(dict.fromkeys(span.slot for span in self.spans if span.slot))


def group_rows_by_section(segments: Sequence[Segment]) -> list[tuple[str, list[TextRow]]]:
    """The text in order, section by section."""
    rows = build_text_rows(
        "".join([segment.text for segment in segments]), merge_origin_spans(list_origin_spans(segments))
    )
    grouped = groupby(rows, key=lambda row: row.spans[0].section)
    return [(section, list(group)) for section, group in grouped]


def list_origin_spans(segments: Sequence[Segment]) -> Iterator[OriginSpan]:
    """Where each segment stands; a slot covers its whole run."""
    at, slot, left = 0, "", 0
    for segment in segments:
        if not left:
            slot, left = segment.slot, segment.span
        left -= 1
        end = at + len(segment.text)
        yield OriginSpan(at, end, segment.section, segment.origin, slot)
        at = end


def merge_origin_spans(spans: Iterable[OriginSpan]) -> list[OriginSpan]:
    """Neighbours of one origin as one; empty ones are nowhere to be seen."""
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
    """Rows break where an origin does, at the next line's beginning: no line is torn apart."""
    rows: list[TextRow] = []
    for span in spans:
        start = span.start
        if rows and text[start - 1] != "\n":
            start = extend_text_row(rows[-1], span, text)
        if start < span.end:
            rows.append(TextRow(start, span.end, [slice_origin_span(span, start, span.end)]))
    return rows


def extend_text_row(row: TextRow, span: OriginSpan, text: str) -> int:
    """Finish the row's last line with what this stretch says of it; tell where the next line begins."""
    line_end = text.find("\n", span.start, span.end)
    stop = span.end if line_end < 0 else line_end + 1
    if line_end != span.start:
        row.spans.append(slice_origin_span(span, span.start, stop))
    row.end = stop
    return stop


def slice_origin_span(span: OriginSpan, start: int, end: int) -> OriginSpan:
    return OriginSpan(start, end, span.section, span.origin, span.slot)

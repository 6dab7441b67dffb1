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
    stretches: list[OriginSpan] = field(default_factory=list)

    @property
    def origins(self) -> list[Origin]:
        """Each once; words of the layout are named only where there are no others."""
        found = list(dict.fromkeys(stretch.origin for stretch in self.stretches))
        told = [origin for origin in found if origin.kind not in ("layout", "slot")]
        return told or found[:1]

    @property
    def slots(self) -> list[str]:
        return list(dict.fromkeys(stretch.slot for stretch in self.stretches if stretch.slot))


def group_rows_by_section(segments: Sequence[Segment]) -> list[tuple[str, list[TextRow]]]:
    """The text in order, section by section."""
    rows = build_text_rows(
        "".join([segment.text for segment in segments]), merge_origin_spans(list_origin_spans(segments))
    )
    grouped = groupby(rows, key=lambda row: row.stretches[0].section)
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


def merge_origin_spans(stretches: Iterable[OriginSpan]) -> list[OriginSpan]:
    """Neighbours of one origin as one; empty ones are nowhere to be seen."""
    found: list[OriginSpan] = []
    for one in stretches:
        if one.start == one.end:
            continue
        last = found[-1] if found else None
        if last and (last.section, last.origin, last.slot) == (one.section, one.origin, one.slot):
            found[-1] = OriginSpan(last.start, one.end, one.section, one.origin, one.slot)
        else:
            found.append(one)
    return found


def build_text_rows(text: str, stretches: Sequence[OriginSpan]) -> list[TextRow]:
    """Rows break where an origin does, at the next line's beginning: no line is torn apart."""
    rows: list[TextRow] = []
    for stretch in stretches:
        start = stretch.start
        if rows and text[start - 1] != "\n":
            start = extend_text_row(rows[-1], stretch, text)
        if start < stretch.end:
            rows.append(TextRow(start, stretch.end, [slice_origin_span(stretch, start, stretch.end)]))
    return rows


def extend_text_row(row: TextRow, stretch: OriginSpan, text: str) -> int:
    """Finish the row's last line with what this stretch says of it; tell where the next line begins."""
    line_end = text.find("\n", stretch.start, stretch.end)
    stop = stretch.end if line_end < 0 else line_end + 1
    if line_end != stretch.start:
        row.stretches.append(slice_origin_span(stretch, stretch.start, stop))
    row.end = stop
    return stop


def slice_origin_span(stretch: OriginSpan, start: int, end: int) -> OriginSpan:
    return OriginSpan(start, end, stretch.section, stretch.origin, stretch.slot)

"""The text of the Studio as people read it: sections and rows, each beside who said it, new lines lit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.utils.translation import gettext as _

from personas.models import Workspace
from prompts.assembly.segments import Origin
from prompts.inputs import Draft
from prompts.inputs.convert import origin_of
from prompts.provenance.origins import KINDS, LAYOUT_WORDS, Told, told_of
from prompts.studio.location import Part, Place
from prompts.studio.prompt_view import Shown
from prompts.versions.text_rows import Row, Stretch, rows_by_section
from skills.files.visible_text import Seen

# More rows than anybody scrolls through; the rest is counted.
MOST_ROWS = 1_200


@dataclass(frozen=True)
class Source:
    """Who said some words, in words; `part` where the Studio can open it."""

    told: Told
    part: str = ""
    href: str = ""

    @property
    def words(self) -> str:
        """Record, revision and author in one line."""
        told = self.told
        name = f"{told.words} “{told.name}”" if told.name else told.words
        said = [name, _("revision %(number)d") % {"number": told.revision} if told.revision else ""]
        return ", ".join([one for one in [*said, told.author] if one])


@dataclass(frozen=True)
class Piece:
    """Some characters of one source, either new or not."""

    start: int
    end: int
    source: Source
    slot: str
    is_edited: bool


@dataclass(frozen=True)
class Line:
    """Whole lines of the text beside who said them."""

    start: int
    end: int
    pieces: Sequence[Piece]
    sources: Sequence[Source]

    @property
    def is_edited(self) -> bool:
        return any(piece.is_edited for piece in self.pieces)


@dataclass(frozen=True)
class Section:
    """A section of the text, and how much of the whole it is."""

    name: str
    rows: Sequence[Line]
    tokens: int
    kind: str
    slots: Sequence[str] = ()
    boundary: str = ""
    gone: int = 0

    @property
    def is_edited(self) -> bool:
        return bool(self.gone) or any(row.is_edited for row in self.rows)


class Reading:
    """What is shown, with every origin in words."""

    def __init__(self, workspace: Workspace, place: Place, shown: Shown, draft: Draft | None = None) -> None:
        self.workspace, self.place, self.shown, self.draft = workspace, place, shown, draft

    @cached_property
    def seen(self) -> Seen:
        return Seen(self.shown.text)

    @cached_property
    def told(self) -> Mapping[Origin, Told]:
        origins = {segment.origin for segment in self.shown.segments}
        own = self.drafted_origin
        others = origins - {own} if own else origins
        found = told_of(self.workspace, others, known=self.shown.keys)
        return found | {own: self.told_draft(own)} if own and own in origins else found

    @cached_property
    def drafted_origin(self) -> Origin | None:
        return origin_of(self.draft.record) if self.draft else None

    def told_draft(self, origin: Origin) -> Told:
        record = self.draft.record if self.draft else None
        key = getattr(record, KINDS[origin.kind].key, "") or ""
        words, revision = str(KINDS[origin.kind].words), origin.revision if record and record.pk else 0
        return Told(origin.kind, words, str(record), revision, _("you, not saved yet"), key=str(key))

    def source(self, origin: Origin) -> Source:
        told = self.told.get(origin, LAYOUT_WORDS)
        family = KINDS[told.kind].family if told.kind in KINDS else ""
        if not family or not told.key or told.kind == "context_file":
            return Source(told, "", told.url)
        part = Part(family, told.key)
        return Source(told, str(part), self.place.at(part=part).url())

    @cached_property
    def sources(self) -> dict[Origin, Source]:
        origins = dict.fromkeys(segment.origin for segment in self.shown.segments)
        return {origin: self.source(origin) for origin in origins}

    @cached_property
    def grouped(self) -> list[tuple[str, list[Row]]]:
        return rows_by_section(self.shown.segments)

    @cached_property
    def sections(self) -> list[Section]:
        ends = {boundary.offset: boundary.volatility for boundary in self.shown.boundaries}
        found, room = [], MOST_ROWS
        for name, rows in self.grouped:
            found.append(self.section(name, rows, rows[:room], ends))
            room = max(0, room - len(rows))
        return found

    @property
    def more_rows(self) -> int:
        """Rows that are not drawn."""
        drawn = sum(len(section.rows) for section in self.sections)
        return sum(len(rows) for _name, rows in self.grouped) - drawn

    def section(
        self, name: str, rows: Sequence[Row], drawn: Sequence[Row], ends: Mapping[int, str]
    ) -> Section:
        # The line end before a section's first row belongs to the section too.
        begin = next((at for at in (rows[0].start, rows[0].start - 1) if at in ends), -1)
        slots = list(dict.fromkeys(slot for row in rows for slot in row.slots))
        tokens = self.shown.sizes.get(name, [0, 0])[1]
        gone = sum(count for at, count in self.shown.edits.gone.items() if rows[0].start <= at < rows[-1].end)
        lines = [self.line(row) for row in drawn]
        return Section(name, lines, tokens, main_kind(rows), slots, ends.get(begin, ""), gone)

    def line(self, row: Row) -> Line:
        pieces = [piece for stretch in row.stretches for piece in self.pieces(stretch)]
        return Line(row.start, row.end, pieces, [self.sources[origin] for origin in row.origins])

    def pieces(self, stretch: Stretch) -> list[Piece]:
        source = self.sources[stretch.origin]
        return [
            Piece(start, end, source, stretch.slot, is_edited)
            for start, end, is_edited in self.shown.edits.cut(stretch.start, stretch.end)
        ]

    @property
    def is_in_it(self) -> bool:
        """Whether the open part says anything in this prompt."""
        if self.drafted_origin is not None:
            return self.drafted_origin in self.sources
        return any(source.part == str(self.place.part) for source in self.sources.values())


def main_kind(rows: Sequence[Row]) -> str:
    """Whose words most of a section is; the layout's own count only where there are no others."""
    sizes: dict[str, int] = {}
    for row in rows:
        for stretch in row.stretches:
            sizes[stretch.origin.kind] = sizes.get(stretch.origin.kind, 0) + stretch.end - stretch.start
    others = {kind: size for kind, size in sizes.items() if kind not in ("layout", "slot")}
    return max(others or sizes, key=lambda kind: sizes[kind], default="layout")

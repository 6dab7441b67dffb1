"""The text of the Studio as people read it: sections and rows, each beside who said it, new lines lit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.utils.translation import gettext as _

from personas.models import Workspace
from prompts.assembly.segments import Origin
from prompts.inputs import DraftRecord
from prompts.inputs.convert import build_record_origin
from prompts.provenance.origins import LAYOUT_LABEL, RECORD_KINDS, OriginLabel, describe_origins
from prompts.studio.location import PartRef, StudioLocation
from prompts.studio.prompt_view import PreviewResult
from prompts.versions.text_rows import OriginSpan, TextRow, group_rows_by_section
from skills.files.visible_text import VisibleText

# More rows than anybody scrolls through; the rest is counted.
MAX_SHOWN_ROWS = 1_200


@dataclass(frozen=True)
class TextSource:
    """Who said some words, in words; `part` where the Studio can open it."""

    told: OriginLabel
    part: str = ""
    href: str = ""

    @property
    def words(self) -> str:
        """Record, revision and author in one line."""
        told = self.told
        name = f"{told.label} “{told.name}”" if told.name else told.label
        said = [name, _("revision %(number)d") % {"number": told.revision} if told.revision else ""]
        return ", ".join([one for one in [*said, told.author] if one])


@dataclass(frozen=True)
class StudioSpan:
    """Some characters of one source, either new or not."""

    start: int
    end: int
    source: TextSource
    slot: str
    is_edited: bool


@dataclass(frozen=True)
class StudioRow:
    """Whole lines of the text beside who said them."""

    start: int
    end: int
    pieces: Sequence[StudioSpan]
    sources: Sequence[TextSource]

    @property
    def is_edited(self) -> bool:
        return any(piece.is_edited for piece in self.pieces)


@dataclass(frozen=True)
class StudioSection:
    """A section of the text, and how much of the whole it is."""

    name: str
    rows: Sequence[StudioRow]
    tokens: int
    kind: str
    slots: Sequence[str] = ()
    boundary: str = ""
    gone: int = 0

    @property
    def is_edited(self) -> bool:
        return bool(self.gone) or any(row.is_edited for row in self.rows)


class StudioText:
    """What is shown, with every origin in words."""

    def __init__(
        self,
        workspace: Workspace,
        place: StudioLocation,
        shown: PreviewResult,
        draft: DraftRecord | None = None,
    ) -> None:
        self.workspace, self.place, self.shown, self.draft = workspace, place, shown, draft

    @cached_property
    def seen(self) -> VisibleText:
        return VisibleText(self.shown.text)

    @cached_property
    def told(self) -> Mapping[Origin, OriginLabel]:
        origins = {segment.origin for segment in self.shown.segments}
        own = self.drafted_origin
        others = origins - {own} if own else origins
        found = describe_origins(self.workspace, others, url_keys=self.shown.keys)
        return found | {own: self.told_draft(own)} if own and own in origins else found

    @cached_property
    def drafted_origin(self) -> Origin | None:
        return build_record_origin(self.draft.record) if self.draft else None

    def told_draft(self, origin: Origin) -> OriginLabel:
        record = self.draft.record if self.draft else None
        key = getattr(record, RECORD_KINDS[origin.kind].key, "") or ""
        words, revision = str(RECORD_KINDS[origin.kind].label), origin.revision if record and record.pk else 0
        return OriginLabel(origin.kind, words, str(record), revision, _("you, not saved yet"), key=str(key))

    def source(self, origin: Origin) -> TextSource:
        told = self.told.get(origin, LAYOUT_LABEL)
        family = RECORD_KINDS[told.kind].family if told.kind in RECORD_KINDS else ""
        if not family or not told.key or told.kind == "context_file":
            return TextSource(told, "", told.url)
        part = PartRef(family, told.key)
        return TextSource(told, str(part), self.place.at(part=part).url())

    @cached_property
    def sources(self) -> dict[Origin, TextSource]:
        origins = dict.fromkeys(segment.origin for segment in self.shown.segments)
        return {origin: self.source(origin) for origin in origins}

    @cached_property
    def grouped(self) -> list[tuple[str, list[TextRow]]]:
        return group_rows_by_section(self.shown.segments)

    @cached_property
    def sections(self) -> list[StudioSection]:
        ends = {boundary.offset: boundary.volatility for boundary in self.shown.boundaries}
        found, room = [], MAX_SHOWN_ROWS
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
        self, name: str, rows: Sequence[TextRow], drawn: Sequence[TextRow], ends: Mapping[int, str]
    ) -> StudioSection:
        # The line end before a section's first row belongs to the section too.
        begin = next((at for at in (rows[0].start, rows[0].start - 1) if at in ends), -1)
        slots = list(dict.fromkeys(slot for row in rows for slot in row.slots))
        tokens = self.shown.sizes.get(name, [0, 0])[1]
        gone = sum(count for at, count in self.shown.edits.gone.items() if rows[0].start <= at < rows[-1].end)
        lines = [self.line(row) for row in drawn]
        return StudioSection(name, lines, tokens, find_section_kind(rows), slots, ends.get(begin, ""), gone)

    def line(self, row: TextRow) -> StudioRow:
        pieces = [piece for stretch in row.spans for piece in self.pieces(stretch)]
        return StudioRow(row.start, row.end, pieces, [self.sources[origin] for origin in row.origins])

    def pieces(self, stretch: OriginSpan) -> list[StudioSpan]:
        source = self.sources[stretch.origin]
        return [
            StudioSpan(start, end, source, stretch.slot, is_edited)
            for start, end, is_edited in self.shown.edits.cut(stretch.start, stretch.end)
        ]

    @property
    def is_in_it(self) -> bool:
        """Whether the open part says anything in this prompt."""
        if self.drafted_origin is not None:
            return self.drafted_origin in self.sources
        return any(source.part == str(self.place.part) for source in self.sources.values())


def find_section_kind(rows: Sequence[TextRow]) -> str:
    """Whose words most of a section is; the layout's own count only where there are no others."""
    sizes: dict[str, int] = {}
    for row in rows:
        for stretch in row.spans:
            sizes[stretch.origin.kind] = sizes.get(stretch.origin.kind, 0) + stretch.end - stretch.start
    others = {kind: size for kind, size in sizes.items() if kind not in ("layout", "slot")}
    return max(others or sizes, key=lambda kind: sizes[kind], default="layout")

"""The prompt text as the Studio renders it: sections of rows with their origins and edited spans."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from personas.models import Workspace
from prompts.assembly.segments import Origin
from prompts.publishing.inputs import DraftRecord
from prompts.publishing.inputs.convert import build_record_origin
from prompts.publishing.provenance.origins import LAYOUT_LABEL, RECORD_KINDS, OriginLabel, describe_origins
from prompts.publishing.versions.page import BarBlock, list_tool_blocks
from prompts.publishing.versions.text_rows import OriginSpan, TextRow, group_rows_by_section
from prompts.studio.location import PartRef, StudioLocation
from prompts.studio.prompt_view import PreviewResult
from skills.files.visible_text import VisibleText

# Maximum number of rendered rows; further rows are only counted.
MAX_SHOWN_ROWS = 1_200
PART_ATTRIBUTES_HTML = ' data-part="{}" data-origin="{}"'


@dataclass(frozen=True)
class TextSource:
    """The origin of some text; `part` is set if the Studio can open the record."""

    origin_label: OriginLabel
    part: str = ""
    href: str = ""

    @cached_property
    def description(self) -> str:
        """Record, revision and author in one line."""
        label = self.origin_label
        name = f"{label.label} “{label.name}”" if label.name else label.label
        parts = [name, _("revision %(number)d") % {"number": label.revision} if label.revision else ""]
        return ", ".join([part for part in [*parts, label.author] if part])

    @cached_property
    def attributes(self) -> SafeString | str:
        """The attributes of the elements with its text; empty if the Studio cannot open the record."""
        return format_html(PART_ATTRIBUTES_HTML, self.part, self.description) if self.part else ""


@dataclass(frozen=True)
class StudioSpan:
    """A character range from one source that is entirely edited or entirely unchanged."""

    start: int
    end: int
    source: TextSource
    slot: str
    is_edited: bool


@dataclass(frozen=True)
class StudioRow:
    """Complete lines of the text with their sources."""

    start: int
    end: int
    spans: Sequence[StudioSpan]
    sources: Sequence[TextSource]

    @property
    def is_edited(self) -> bool:
        return any(span.is_edited for span in self.spans)


@dataclass(frozen=True)
class StudioSection:
    """A section of the prompt with its token count."""

    name: str
    rows: Sequence[StudioRow]
    tokens: int
    kind: str
    slots: Sequence[str] = ()
    boundary: str = ""
    deleted_lines: int = 0

    @property
    def is_edited(self) -> bool:
        return bool(self.deleted_lines) or any(row.is_edited for row in self.rows)


class StudioText:
    """The previewed prompt text with a readable label for every origin."""

    def __init__(
        self,
        workspace: Workspace,
        location: StudioLocation,
        preview: PreviewResult,
        draft: DraftRecord | None = None,
    ) -> None:
        self.workspace, self.location, self.preview, self.draft = workspace, location, preview, draft

    @cached_property
    def visible_text(self) -> VisibleText:
        return VisibleText(self.preview.text)

    @cached_property
    def origin_labels(self) -> Mapping[Origin, OriginLabel]:
        origins = {segment.origin for segment in self.preview.segments}
        draft_origin = self.draft_origin
        others = origins - {draft_origin} if draft_origin else origins
        labels = describe_origins(self.workspace, others, url_keys=self.preview.url_keys)
        return (
            labels | {draft_origin: self.build_draft_label(draft_origin)}
            if draft_origin and draft_origin in origins
            else labels
        )

    @cached_property
    def draft_origin(self) -> Origin | None:
        return build_record_origin(self.draft.record) if self.draft else None

    def build_draft_label(self, origin: Origin) -> OriginLabel:
        record = self.draft.record if self.draft else None
        key = getattr(record, RECORD_KINDS[origin.kind].key, "") or ""
        label, revision = str(RECORD_KINDS[origin.kind].label), origin.revision if record and record.pk else 0
        return OriginLabel(origin.kind, label, str(record), revision, _("your draft"), key=str(key))

    def build_source(self, origin: Origin) -> TextSource:
        label = self.origin_labels.get(origin, LAYOUT_LABEL)
        family = RECORD_KINDS[label.kind].family if label.kind in RECORD_KINDS else ""
        if not family or not label.key or label.kind == "context_file":
            return TextSource(label, "", label.url)
        part = PartRef(family, label.key)
        return TextSource(label, str(part), self.location.get_part_url(part))

    @cached_property
    def sources(self) -> dict[Origin, TextSource]:
        origins = dict.fromkeys(segment.origin for segment in self.preview.segments)
        return {origin: self.build_source(origin) for origin in origins}

    @cached_property
    def rows_by_section(self) -> list[tuple[str, list[TextRow]]]:
        return group_rows_by_section(self.preview.segments)

    @cached_property
    def sections(self) -> list[StudioSection]:
        boundaries = {boundary.offset: boundary.volatility for boundary in self.preview.cache_boundaries}
        sections, remaining = [], MAX_SHOWN_ROWS
        for name, rows in self.rows_by_section:
            sections.append(self.build_section(name, rows, rows[:remaining], boundaries))
            remaining = max(0, remaining - len(rows))
        return sections

    @property
    def hidden_row_count(self) -> int:
        visible = sum(len(section.rows) for section in self.sections)
        return sum(len(rows) for _name, rows in self.rows_by_section) - visible

    @property
    def bar_blocks(self) -> list[BarBlock | StudioSection]:
        """The blocks of the token bar: the tool definitions, which providers put first, and the sections."""
        return [*list_tool_blocks(self.preview.tool_tokens), *self.sections]

    def build_section(
        self,
        name: str,
        rows: Sequence[TextRow],
        visible_rows: Sequence[TextRow],
        boundaries: Mapping[int, str],
    ) -> StudioSection:
        # A cache boundary may lie before the line break in front of the first row.
        boundary_offset = next(
            (offset for offset in (rows[0].start, rows[0].start - 1) if offset in boundaries), -1
        )
        slots = list(dict.fromkeys(slot for row in rows for slot in row.slots))
        tokens = self.preview.sizes.get(name, [0, 0])[1]
        deleted_lines = sum(
            count
            for offset, count in self.preview.edits.deleted_lines.items()
            if rows[0].start <= offset < rows[-1].end
        )
        studio_rows = [self.build_row(row) for row in visible_rows]
        return StudioSection(
            name,
            studio_rows,
            tokens,
            find_section_kind(rows),
            slots,
            boundaries.get(boundary_offset, ""),
            deleted_lines,
        )

    def build_row(self, row: TextRow) -> StudioRow:
        spans = [span for origin_span in row.spans for span in self.build_spans(origin_span)]
        return StudioRow(row.start, row.end, spans, [self.sources[origin] for origin in row.origins])

    def build_spans(self, origin_span: OriginSpan) -> list[StudioSpan]:
        source = self.sources[origin_span.origin]
        return [
            StudioSpan(start, end, source, origin_span.slot, is_edited)
            for start, end, is_edited in self.preview.edits.split_range(origin_span.start, origin_span.end)
        ]

    @property
    def has_open_part(self) -> bool:
        """Whether the prompt contains text of the open part."""
        if self.draft_origin is not None:
            return self.draft_origin in self.sources
        return any(source.part == str(self.location.part) for source in self.sources.values())


def find_section_kind(rows: Sequence[TextRow]) -> str:
    """Return the kind of origin (soul, memory, …) that most of a section's text comes from.

    Text of the layout and of slots is considered only if the section has no other text.
    """
    sizes: dict[str, int] = {}
    for row in rows:
        for span in row.spans:
            sizes[span.origin.kind] = sizes.get(span.origin.kind, 0) + span.end - span.start
    others = {kind: size for kind, size in sizes.items() if kind not in ("layout", "slot")}
    return max(others or sizes, key=lambda kind: sizes[kind], default="layout")

"""What the page of one version shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from personas.models import Workspace
from prompts.assembly.pieces import Origin, Segment
from prompts.assembly.report import Boundary, boundaries
from prompts.causes import causes_in_words
from prompts.models import PromptVersion
from prompts.origins import LAYOUT_WORDS, Told, told_of
from prompts.proving import version_row
from prompts.selectors import parts_of, report_of, segments_of
from prompts.storing import GONE
from prompts.version_text import Row, rows_by_section
from skills.glyphs import Seen


@dataclass(frozen=True)
class Beside:
    """A row of the text with its origins in words."""

    row: Row
    told: Sequence[Told]


@dataclass(frozen=True)
class Section:
    """A section of the text, with how much of the whole it is."""

    name: str
    rows: Sequence[Beside]
    characters: int
    tokens: int
    # What a call may fill anew in it.
    slots: Sequence[str] = ()
    # What a cache keeps up to here, where a level ends.
    boundary: str = ""


@dataclass(frozen=True)
class Locked:
    """A line of the lockfile: what was pinned, at which digest."""

    told: Told
    digest: str


class Reading:
    """One version, read for a page."""

    def __init__(self, workspace: Workspace, version: PromptVersion) -> None:
        self.workspace, self.version = workspace, version

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        return segments_of(self.version)

    @cached_property
    def seen(self) -> Seen:
        return Seen("".join([segment.text for segment in self.segments]))

    @cached_property
    def is_erased(self) -> bool:
        return any(segment.text == GONE for segment in self.segments)

    @cached_property
    def boundaries(self) -> Sequence[Boundary]:
        """Where caches can end, told from how often each segment changes."""
        offsets = accumulate([len(segment.text) for segment in self.segments], initial=0)
        return boundaries(
            (segment.volatility, at) for segment, at in zip(self.segments, offsets, strict=False)
        )

    @cached_property
    def pinned(self) -> list[tuple[Origin, str]]:
        """The lockfile's parts: "kind:id@revision" and a digest."""
        paths = {segment.origin._replace(path=""): segment.origin for segment in self.segments}
        found = []
        for name, digest in parts_of(self.version).items():
            kind, _, rest = name.partition(":")
            key, _, revision = rest.rpartition("@")
            origin = Origin(kind, key, int(revision) if revision.isdecimal() else 0)
            found.append((paths.get(origin, origin), digest))
        return found

    @cached_property
    def told(self) -> dict[Origin, Told]:
        pinned = [origin for origin, _ in self.pinned]
        return told_of(self.workspace, [*(segment.origin for segment in self.segments), *pinned])

    def words_for(self, origin: Origin) -> Told:
        return self.told.get(origin, LAYOUT_WORDS)

    @cached_property
    def sections(self) -> list[Section]:
        ends = {boundary.offset: boundary.volatility for boundary in self.boundaries}
        return [self.section(name, rows, ends) for name, rows in rows_by_section(self.segments)]

    def section(self, name: str, rows: Sequence[Row], ends: dict[int, str]) -> Section:
        characters, tokens = self.version.sizes.get(name, (0, 0))
        beside = [Beside(row, [self.words_for(origin) for origin in row.origins]) for row in rows]
        # The line end before a section's first row belongs to the section too.
        begin = next((at for at in (rows[0].start, rows[0].start - 1) if at in ends), -1)
        slots = list(dict.fromkeys(slot for row in rows for slot in row.slots))
        return Section(name, beside, characters, tokens, slots, ends.get(begin, ""))

    @cached_property
    def lockfile(self) -> list[Locked]:
        return [Locked(self.words_for(origin), digest) for origin, digest in self.pinned]

    @cached_property
    def report(self) -> dict[str, Any]:
        return report_of(self.version)

    @cached_property
    def omitted(self) -> dict[str, list[str]]:
        """By reason, the parts that are not there."""
        found: dict[str, list[str]] = {}
        for name, reason in self.report.get("omitted", {}).items():
            found.setdefault(reason, []).append(name)
        return found

    @cached_property
    def is_whole(self) -> bool:
        """Whether the stored row still has the hash it was written with."""
        return version_row(self.version).hash(self.version.previous_hash) == self.version.hash

    def context(self) -> dict[str, Any]:
        [causes] = causes_in_words(self.workspace, [self.version.causes], shown=20)
        return {
            "version": self.version,
            "reading": self,
            "report": self.report,
            "causes": causes,
        }

"""Data of the version page: annotated text, lockfile, cache boundaries and build report."""

import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

from django.urls import reverse
from django.utils.translation import ngettext

from personas.models import Workspace
from prompts.assembly.report import CacheBoundary, find_cache_boundaries
from prompts.assembly.segments import Origin, Segment, get_texts_by_section
from prompts.models import Comment, PromptVersion
from prompts.proof_rows import build_version_row
from prompts.publishing.builds.tokens import count_tokens_cached, count_tokens_from
from prompts.publishing.provenance.causes import describe_causes, list_cause_revisions
from prompts.publishing.provenance.origins import (
    LAYOUT_LABEL,
    RECORD_KINDS,
    OriginLabel,
    RevisionKey,
    describe_file_changes,
    describe_origins,
    describe_revisions,
    list_revision_keys,
)
from prompts.publishing.versions.diff import find_per_call_offset
from prompts.publishing.versions.segments import ERASED_TEXT, list_content_digests, unpack_segments
from prompts.publishing.versions.selectors import (
    decode_skill_file,
    get_contents,
    get_lockfile_parts,
    get_version_contents,
    parse_build_report,
)
from prompts.publishing.versions.text_rows import TextRow, group_rows_by_section
from prompts.publishing.versions.tool_definitions import DefinitionJson, encode_definition, parse_definitions
from skills.files.visible_text import VisibleText


@dataclass(frozen=True)
class AnnotatedRow:
    """A row of the text with the labels of its origins."""

    row: TextRow
    origin_labels: Sequence[OriginLabel]
    # The number, from 1, of the row's first line with comments, or else of its first nonempty line; 0 if
    # members cannot comment on the row.
    line: int = 0
    # Number of comments on the lines of the row.
    comment_count: int = 0
    # Where the comments on the row are loaded from; empty if they are not open.
    comments_url: str = ""


@dataclass(frozen=True)
class VersionSection:
    """A section of the text with its size."""

    name: str
    rows: Sequence[AnnotatedRow]
    characters: int
    tokens: int
    # Names of the slots that a call can fill.
    slots: Sequence[str] = ()
    # The volatility whose cache boundary is at the start of this section, if any.
    boundary: str = ""
    # Record kind that contributes most of the text.
    kind: str = "layout"


@dataclass(frozen=True)
class ToolEntry:
    """A tool definition with its size."""

    name: str
    description: str
    # The parameter schema as indented JSON.
    parameters: str
    characters: int
    tokens: int


@dataclass(frozen=True)
class BarBlock:
    """A block of the token bar that is no section of the text."""

    name: str
    tokens: int
    kind: str


@dataclass(frozen=True)
class LockfileEntry:
    """An entry of the lockfile: a part and the digest of its text."""

    origin_label: OriginLabel
    digest: str


def find_main_origin_kind(rows: Sequence[TextRow]) -> str:
    """Return the record kind with most characters in these rows; "layout" if there are no records."""
    sizes: Counter[str] = Counter()
    for row in rows:
        for span in row.spans:
            sizes[span.origin.kind] += span.end - span.start
    candidates = [(size, kind) for kind, size in sizes.items() if kind not in ("layout", "slot")]
    return max(candidates)[1] if candidates else "layout"


class VersionPage:
    """A version prepared for its page; everything is loaded on first use."""

    def __init__(
        self,
        workspace: Workspace,
        version: PromptVersion,
        *,
        has_lockfile: bool = False,
        open_line: int = 0,
    ) -> None:
        self.workspace, self.version, self.has_lockfile = workspace, version, has_lockfile
        # The comments on the row that contains this line are open.
        self.open_line = open_line

    @cached_property
    def contents(self) -> dict[str, bytes | None]:
        """Contents of the segments, the tool definitions and the report, loaded with one query."""
        version = self.version
        digests = list_content_digests(version.segments, version.tools)
        return get_version_contents(version, [*digests, version.report])

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        return unpack_segments(self.version.segments, self.contents)

    @cached_property
    def visible_text(self) -> VisibleText:
        return VisibleText("".join([segment.text for segment in self.segments]))

    @cached_property
    def line_ends(self) -> list[int]:
        """Offsets of the line breaks."""
        return [match.start() for match in re.finditer("\n", self.visible_text.text)]

    @cached_property
    def is_erased(self) -> bool:
        return any(segment.text == ERASED_TEXT for segment in self.segments)

    @cached_property
    def boundaries(self) -> Sequence[CacheBoundary]:
        """Offsets in characters where a prompt cache can end, with the volatility of the text before each."""
        offsets = accumulate([len(segment.text) for segment in self.segments], initial=0)
        return find_cache_boundaries(
            (segment.volatility, at) for segment, at in zip(self.segments, offsets, strict=False)
        )

    @cached_property
    def skill_files(self) -> list[dict[str, Any]]:
        """The skill files that the version offers, each with its text."""
        files = self.version.skill_files
        contents = get_contents(self.workspace, [file["content"] for file in files])
        return [
            file
            | {"path": f"{file['name']}/SKILL.md", "text": decode_skill_file(contents.get(file["content"]))}
            for file in files
        ]

    @cached_property
    def lockfile_origins(self) -> list[tuple[Origin, str]]:
        """Parts of the lockfile as origins with digests; empty unless the lockfile was requested."""
        if not self.has_lockfile:
            return []
        paths = {segment.origin._replace(path=""): segment.origin for segment in self.segments}
        entries = []
        for name, digest in get_lockfile_parts(self.version).items():
            kind, _, rest = name.partition(":")
            key, _, revision = rest.rpartition("@")
            origin = Origin(kind, key, int(revision) if revision.isdecimal() else 0)
            entries.append((paths.get(origin, origin), digest))
        return entries

    @cached_property
    def origin_labels(self) -> dict[Origin, OriginLabel]:
        labels = describe_origins(self.workspace, self.origins, self.revision_labels)
        return labels | {origin: self.add_file_change(origin, labels[origin]) for origin in self.file_changes}

    @cached_property
    def origins(self) -> set[Origin]:
        return {
            *(segment.origin for segment in self.segments),
            *(origin for origin, _ in self.lockfile_origins),
        }

    @cached_property
    def revision_labels(self) -> dict[RevisionKey, tuple[str, str]]:
        """Names and authors of all revisions that the page mentions."""
        record_origins = [origin for origin in self.origins if origin.kind in RECORD_KINDS]
        return describe_revisions(
            self.workspace, [*list_revision_keys(record_origins), *list_cause_revisions(self.version.causes)]
        )

    def add_file_change(self, origin: Origin, label: OriginLabel) -> OriginLabel:
        url = reverse("files:detail", args=[self.workspace.slug, origin.id])
        return replace(label, file_change=self.file_changes[origin], file_change_url=url)

    @cached_property
    def file_changes(self) -> dict[Origin, str]:
        """Changes of the source files since this version was built."""
        return describe_file_changes(self.workspace, {segment.origin for segment in self.segments})

    def get_origin_label(self, origin: Origin) -> OriginLabel:
        return self.origin_labels.get(origin, LAYOUT_LABEL)

    @property
    def file_changes_label(self) -> str:
        count = len({origin.id for origin in self.file_changes})
        return ngettext("%(count)s file changed", "%(count)s files changed", count) % {"count": count}

    def annotate_row(self, row: TextRow) -> AnnotatedRow:
        text = self.visible_text.text[row.start : row.end]
        start = row.start + len(text) - len(text.lstrip("\n"))
        first, last = (bisect_left(self.line_ends, at) + 1 for at in (min(start, row.end - 1), row.end - 1))
        commented = [line for line in sorted(self.comment_counts) if first <= line <= last]
        is_open = first <= self.open_line <= last
        return AnnotatedRow(
            row,
            [self.get_origin_label(origin) for origin in row.origins],
            commented[0] if commented else first,
            sum(self.comment_counts[line] for line in commented),
            f"{self.comments_url}?lines={first}-{last}&line={self.open_line}" if is_open else "",
        )

    @property
    def comments_url(self) -> str:
        version = self.version
        return reverse("comments:version", args=[self.workspace.slug, version.prompt_id, version.number])

    @property
    def has_open_row(self) -> bool:
        return any(row.comments_url for section in self.sections for row in section.rows)

    @cached_property
    def comment_counts(self) -> Counter[int]:
        """The number of comments by line."""
        rows = Comment.objects.in_workspace(self.workspace).filter(version=self.version)
        return Counter(line for line in rows.values_list("line", flat=True) if line)

    @cached_property
    def sections(self) -> list[VersionSection]:
        ends = {boundary.offset: boundary.volatility for boundary in self.boundaries}
        return [self.build_section(name, rows, ends) for name, rows in group_rows_by_section(self.segments)]

    def build_section(self, name: str, rows: Sequence[TextRow], ends: dict[int, str]) -> VersionSection:
        characters, tokens = self.version.sizes.get(name, (0, 0))
        annotated = [self.annotate_row(row) for row in rows]
        # A boundary one character earlier counts too: the line break before the first row is in the section.
        boundary_offset = next((at for at in (rows[0].start, rows[0].start - 1) if at in ends), -1)
        slots = list(dict.fromkeys(slot for row in rows for slot in row.slots))
        return VersionSection(
            name,
            annotated,
            characters,
            tokens,
            slots,
            ends.get(boundary_offset, ""),
            find_main_origin_kind(rows),
        )

    @cached_property
    def definitions(self) -> Sequence[DefinitionJson] | None:
        """The tool definitions that are sent with the text; None if they were erased."""
        if self.version.tools and self.contents.get(self.version.tools) is None:
            return None
        return parse_definitions(self.contents.get(self.version.tools))

    @cached_property
    def tools(self) -> list[ToolEntry]:
        return [build_tool_entry(definition) for definition in self.definitions or ()]

    @property
    def tool_tokens(self) -> int:
        return sum(tool.tokens for tool in self.tools)

    @property
    def text_tokens(self) -> int:
        return self.version.text_tokens

    @property
    def tokens(self) -> int:
        return self.text_tokens + self.tool_tokens

    @property
    def bar_blocks(self) -> list[BarBlock | VersionSection]:
        """The blocks of the token bar: the tool definitions, which providers put first, and the sections."""
        return [*list_tool_blocks(self.tool_tokens), *self.sections]

    @cached_property
    def cache_share(self) -> float:
        """Share of the tokens (0 to 1) before the first part that changes per session or call.

        The tool definitions count as before it.
        """
        tokens = {section.name: section.tokens for section in self.sections}
        texts = get_texts_by_section(self.segments)
        counts = [(text, tokens.get(section, 0)) for section, text in texts.items()]
        later = count_tokens_from(counts, find_per_call_offset(self.segments))
        return max(0, self.tokens - later) / max(self.tokens, 1)

    @cached_property
    def lockfile(self) -> list[LockfileEntry]:
        return [
            LockfileEntry(self.get_origin_label(origin), digest) for origin, digest in self.lockfile_origins
        ]

    @cached_property
    def report(self) -> dict[str, Any]:
        return parse_build_report(self.contents, self.version)

    @cached_property
    def omitted(self) -> dict[str, list[str]]:
        """Names of the omitted parts, by reason."""
        names_by_reason: dict[str, list[str]] = {}
        for name, reason in self.report.get("omitted", {}).items():
            names_by_reason.setdefault(reason, []).append(name)
        return names_by_reason

    @cached_property
    def is_hash_valid(self) -> bool:
        """Whether the recomputed hash matches the stored one."""
        return build_version_row(self.version).hash(self.version.previous_hash) == self.version.hash

    def build_context(self) -> dict[str, Any]:
        [causes] = describe_causes(
            self.workspace, [self.version.causes], limit=20, revisions=self.revision_labels
        )
        return {
            "version": self.version,
            "reading": self,
            "report": self.report,
            "causes": causes,
        }


def list_tool_blocks(tokens: int) -> list[BarBlock]:
    """Return the block of the tool definitions; none without definitions."""
    return [BarBlock("tool_definitions", tokens, "tool")] if tokens else []


def build_tool_entry(definition: DefinitionJson) -> ToolEntry:
    text = encode_definition(definition)
    return ToolEntry(
        str(definition.get("name", "")),
        str(definition.get("description", "")),
        json.dumps(definition.get("parameters", {}), ensure_ascii=False, indent=2),
        len(text),
        count_tokens_cached(text),
    )

"""The prompt shown in the Studio, stored or drafted: segments, token sizes, build report, edited lines."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from core.text.patience import diff_sequences
from personas.models import Record
from prompts.assembly.report import CacheBoundary, find_cache_boundaries
from prompts.assembly.segments import SESSION, TURN, Segment, get_texts_by_section
from prompts.models import AgentPrompt, PromptVersion
from prompts.publishing.builds.compiler import BuildResult, build_prompt_report
from prompts.publishing.builds.tokens import count_tokens_cached, count_tokens_from
from prompts.publishing.preview.services import PromptPreview
from prompts.publishing.provenance.origins import RecordKey, get_url_key
from prompts.publishing.versions.segments import list_content_digests, unpack_segments
from prompts.publishing.versions.selectors import get_version_contents, parse_build_report
from prompts.studio.slot_form import SlotForm, fill_form_slots

# Longer texts are not diffed: the diff would be too slow for the live preview.
MAX_COMPARED_LENGTH = 400_000
CharacterRange = tuple[int, int]


@dataclass(frozen=True)
class TextEdits:
    """The result of a line diff, as character offsets in the new text.

    `ranges` are the added ranges in order. `deleted_lines` has the number of deleted lines by offset.
    """

    ranges: Sequence[CharacterRange] = ()
    deleted_lines: dict[int, int] = field(default_factory=dict)

    def split_range(self, start: int, end: int) -> list[tuple[int, int, bool]]:
        """Split a character range into (start, end, is_edited) parts."""
        parts: list[tuple[int, int, bool]] = []
        position = start
        for range_start, range_end in self.ranges[self._find_first_range(start) :]:
            if range_start >= end:
                break
            if range_start > position:
                parts.append((position, range_start, False))
            parts.append((max(range_start, position), min(range_end, end), True))
            position = min(range_end, end)
        return [*parts, (position, end, False)] if position < end else parts

    def _find_first_range(self, start: int) -> int:
        """Return the index of the first range that ends after an offset."""
        return bisect_right([range_end for _, range_end in self.ranges], start)


NO_EDITS = TextEdits()


def compute_text_edits(before: str, after: str) -> TextEdits:
    """Compare two texts line by line with a patience diff; added and deleted blank lines are ignored."""
    if before == after or len(before) + len(after) > MAX_COMPARED_LENGTH:
        return NO_EDITS
    old_lines, new_lines = before.split("\n"), after.split("\n")
    offsets = [0, *accumulate(len(line) + 1 for line in new_lines)]
    ranges: list[CharacterRange] = []
    deleted_lines: dict[int, int] = {}
    for kind, i1, i2, j1, j2 in diff_sequences(old_lines, new_lines):
        if kind == "equal":
            continue
        if any(line.strip() for line in new_lines[j1:j2]):
            ranges.append((offsets[j1], min(offsets[j2], len(after))))
        deleted = sum(bool(line.strip()) for line in old_lines[i1:i2]) - sum(
            bool(line.strip()) for line in new_lines[j1:j2]
        )
        if deleted > 0:
            deleted_lines[min(offsets[j1], len(after))] = deleted
    return TextEdits(ranges, deleted_lines)


@dataclass(frozen=True)
class PreviewResult:
    """The segments of a prompt with the numbers and warnings shown above it."""

    segments: Sequence[Segment]
    layout: str
    # Characters and tokens by section.
    sizes: dict[str, list[int]]
    # Tokens of the tool definitions that are sent with the text.
    tool_tokens: int = 0
    report: dict[str, Any] = field(default_factory=dict)
    budget: int | None = None
    # The latest stored version, for the difference in tokens.
    stored_version: PromptVersion | None = None
    edits: TextEdits = NO_EDITS
    is_filled: bool = False
    # For links: the slug, name or id that each record of the prompt has in its URL.
    url_keys: Mapping[RecordKey, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "".join([segment.text for segment in self.segments])

    @property
    def tokens(self) -> int:
        return sum(tokens for _, tokens in self.sizes.values()) + self.tool_tokens

    @property
    def token_delta(self) -> int | None:
        """Difference in tokens to the stored version; None without one or if its layout is another."""
        if self.stored_version is None or self.stored_version.layout != self.layout:
            return None
        return self.tokens - self.stored_version.tokens

    @property
    def tokens_over_budget(self) -> int:
        return max(0, self.tokens - self.budget) if self.budget is not None else 0

    @property
    def cache_boundaries(self) -> Sequence[CacheBoundary]:
        offsets = accumulate([len(segment.text) for segment in self.segments], initial=0)
        return find_cache_boundaries(
            (segment.volatility, offset) for segment, offset in zip(self.segments, offsets, strict=False)
        )

    @property
    def cached_tokens(self) -> int:
        """Tokens of the prefix that a provider's prompt cache can reuse between calls.

        The prefix ends at the first segment that changes per session or turn.
        """
        end = find_call_start(self.segments)
        texts = get_texts_by_section(self.segments)
        counts = [(text, self.sizes[section][1]) for section, text in texts.items() if section in self.sizes]
        return max(0, self.tokens - count_tokens_from(counts, end))


def find_call_start(segments: Sequence[Segment]) -> int:
    offset = 0
    for segment in segments:
        if segment.volatility in (SESSION, TURN):
            break
        offset += len(segment.text)
    return offset


def build_stored_preview(prompt: AgentPrompt, version: PromptVersion, budget: int | None) -> PreviewResult:
    """Build the preview from the stored version, without assembling it.

    The caller makes sure that no build is pending.
    """
    digests = [*list_content_digests(version.segments), version.report]
    contents = get_version_contents(version, digests)
    segments = unpack_segments(version.segments, contents)
    return PreviewResult(
        segments,
        version.layout,
        version.sizes,
        version.tool_tokens,
        parse_build_report(contents, version),
        budget,
        stored_version=prompt.latest,
    )


def build_draft_preview(
    preview: PromptPreview, stored_version: PromptVersion | None, slots: SlotForm | None = None
) -> PreviewResult:
    """Assemble the prompt with the draft and mark the lines that differ from the prompt without it.

    Raises NotBuildable if the prompt cannot be assembled.
    """
    result = replace(
        build_compiled_preview(preview.compile(), stored_version), url_keys=get_preview_url_keys(preview)
    )
    saved = preview.without_draft() if preview.draft else None
    if slots is not None and slots.has_input:
        result = fill_preview_slots(result, slots)
    if saved is None:
        return result
    before: Sequence[Segment] = saved.compile().prompt.segments
    if result.is_filled and slots is not None:
        before = fill_form_slots(before, slots)
    return replace(
        result, edits=compute_text_edits("".join([segment.text for segment in before]), result.text)
    )


def get_preview_url_keys(preview: PromptPreview) -> dict[RecordKey, str]:
    """Map all records loaded for the preview to their URL keys, which saves queries for the links."""
    loaded, agent = preview.loaded, preview.collected.agent
    settings = [part for row in loaded.settings for part in (row.identity, row.soul, row.user_profile)]
    context = loaded.effective_contexts.get(agent.pk)
    rows: list[Record | None] = [
        *(agent, agent.identity, agent.soul, agent.user_profile, preview.collected.channel),
        *settings,
        *(link.tool for link in loaded.tool_links),
        *loaded.responsibilities,
        *loaded.memories,
        *(one.skill for one in (context.skills if context else ())),
    ]
    files = [*(one.file for one in context.files), *(one.file for one in context.skills)] if context else []
    return dict(
        [
            *(get_url_key(row, row.kind) for row in rows if row is not None),
            *(get_url_key(file, "context_file") for file in files if file is not None),
        ]
    )


def build_compiled_preview(build: BuildResult, stored_version: PromptVersion | None) -> PreviewResult:
    return PreviewResult(
        build.prompt.segments,
        build.collected.layout,
        build.sizes,
        build.tool_tokens,
        build_prompt_report(build.prompt, build.collected.problems),
        build.collected.token_budget,
        stored_version,
    )


def fill_preview_slots(preview: PreviewResult, slots: SlotForm) -> PreviewResult:
    """Fill the slots with the values of the form, as serving does, and count the tokens of the result."""
    segments = fill_form_slots(preview.segments, slots)
    texts = get_texts_by_section(segments)
    sizes = {section: [len(text), count_tokens_cached(text)] for section, text in texts.items()}
    return replace(preview, segments=segments, sizes=sizes, is_filled=True)

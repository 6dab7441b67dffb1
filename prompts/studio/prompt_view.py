"""A prompt ready to be shown in the Studio: stored or drafted, with size, losses and what is new."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from patiencediff import PatienceSequenceMatcher

from personas.models import Record
from prompts.assembly.report import CacheBoundary, find_cache_boundaries
from prompts.assembly.segments import SESSION, TURN, Segment
from prompts.assembly.sizes import get_texts_by_section
from prompts.builds.compiler import BuildResult, build_prompt_report, count_tokens_cached
from prompts.models import AgentPrompt, PromptVersion
from prompts.preview.impact import count_tokens_from
from prompts.preview.services import PromptPreview
from prompts.provenance.origins import RecordKey, get_url_key
from prompts.studio.slot_form import SlotForm, fill_form_slots
from prompts.versions.segments import list_content_digests, unpack_segments
from prompts.versions.selectors import get_contents, parse_build_report

# Beyond this nobody looks for single lines, and looking takes too long while somebody types.
MAX_COMPARED_LENGTH = 400_000
CharacterRange = tuple[int, int]


@dataclass(frozen=True)
class TextEdits:
    """Stretches of the newer text that the older has not, in order; and lines that fell away, by offset."""

    ranges: Sequence[CharacterRange] = ()
    gone: dict[int, int] = field(default_factory=dict)

    def cut(self, start: int, end: int) -> list[tuple[int, int, bool]]:
        """These characters in pieces, each either new or not."""
        pieces: list[tuple[int, int, bool]] = []
        at = start
        for low, high in self.ranges[self._first(start) :]:
            if low >= end:
                break
            if low > at:
                pieces.append((at, low, False))
            pieces.append((max(low, at), min(high, end), True))
            at = min(high, end)
        return [*pieces, (at, end, False)] if at < end else pieces

    def _first(self, start: int) -> int:
        """The first range that ends behind this offset."""
        return bisect_right([high for _, high in self.ranges], start)


NO_EDITS = TextEdits()


def compute_text_edits(before: str, after: str) -> TextEdits:
    """Whole lines, for a line is what people read."""
    if before == after or len(before) + len(after) > MAX_COMPARED_LENGTH:
        return NO_EDITS
    old, new = before.split("\n"), after.split("\n")
    offsets = [0, *accumulate(len(line) + 1 for line in new)]
    ranges: list[CharacterRange] = []
    gone: dict[int, int] = {}
    for kind, i1, i2, j1, j2 in PatienceSequenceMatcher(None, old, new).get_opcodes():
        if kind == "equal":
            continue
        if any(line.strip() for line in new[j1:j2]):
            ranges.append((offsets[j1], min(offsets[j2], len(after))))
        lost = sum(bool(line.strip()) for line in old[i1:i2]) - sum(bool(line.strip()) for line in new[j1:j2])
        if lost > 0:
            gone[min(offsets[j1], len(after))] = lost
    return TextEdits(ranges, gone)


@dataclass(frozen=True)
class PreviewResult:
    """The text in segments, and all that is said above it."""

    segments: Sequence[Segment]
    layout: str
    # Characters and tokens of each section.
    sizes: dict[str, list[int]]
    report: dict[str, Any] = field(default_factory=dict)
    budget: int | None = None
    # The version that is stored, to compare the size with.
    stored: PromptVersion | None = None
    edits: TextEdits = NO_EDITS
    is_filled: bool = False
    # What stands in addresses for the records that it was made of.
    keys: Mapping[RecordKey, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "".join([segment.text for segment in self.segments])

    @property
    def tokens(self) -> int:
        return sum(tokens for _, tokens in self.sizes.values())

    @property
    def delta(self) -> int | None:
        """Against the stored version, where both are in one layout."""
        if self.stored is None or self.stored.layout != self.layout:
            return None
        return self.tokens - self.stored.tokens

    @property
    def over(self) -> int:
        """Tokens beyond the budget."""
        return max(0, self.tokens - self.budget) if self.budget is not None else 0

    @property
    def boundaries(self) -> Sequence[CacheBoundary]:
        offsets = accumulate([len(segment.text) for segment in self.segments], initial=0)
        return find_cache_boundaries(
            (one.volatility, at) for one, at in zip(self.segments, offsets, strict=False)
        )

    @property
    def cached_tokens(self) -> int:
        """How much a provider's cache can keep from call to call: all before the first words of a call."""
        end = find_call_start(self.segments)
        texts = get_texts_by_section(self.segments)
        counts = [(said, self.sizes[section][1]) for section, said in texts.items() if section in self.sizes]
        return max(0, self.tokens - count_tokens_from(counts, end))


def find_call_start(segments: Sequence[Segment]) -> int:
    at = 0
    for segment in segments:
        if segment.volatility in (SESSION, TURN):
            break
        at += len(segment.text)
    return at


def build_stored_preview(prompt: AgentPrompt, version: PromptVersion, budget: int | None) -> PreviewResult:
    """What is stored is what is saved, as long as nothing waits to be built; nothing is assembled."""
    digests = [*list_content_digests(version.segments), version.report]
    contents = get_contents(version.workspace_id, digests)
    segments = unpack_segments(version.segments, contents)
    return PreviewResult(
        segments,
        version.layout,
        version.sizes,
        parse_build_report(contents, version),
        budget,
        stored=prompt.latest,
    )


def build_draft_preview(
    found: PromptPreview, stored: PromptVersion | None, slots: SlotForm | None = None
) -> PreviewResult:
    """The draft's prompt, the lines lit that the saved record has not; else NotBuildable."""
    shown = replace(build_compiled_preview(found.compile(), stored), keys=get_preview_url_keys(found))
    saved = found.without_draft() if found.draft else None
    if slots is not None and slots.is_asked:
        shown = fill_preview_slots(shown, slots)
    if saved is None:
        return shown
    before: Sequence[Segment] = saved.compile().prompt.segments
    if shown.is_filled and slots is not None:
        before = fill_form_slots(before, slots)
    return replace(shown, edits=compute_text_edits("".join([one.text for one in before]), shown.text))


def get_preview_url_keys(found: PromptPreview) -> dict[RecordKey, str]:
    """Of all that was loaded for it; files and skills as they were given."""
    loaded, agent = found.loaded, found.collected.agent
    settings = [part for row in loaded.settings for part in (row.identity, row.soul, row.user_profile)]
    given = loaded.effective_contexts.get(agent.pk)
    rows: list[Record | None] = [
        *(agent, agent.identity, agent.soul, agent.user_profile, found.collected.channel),
        *settings,
        *(link.tool for link in loaded.tool_links),
        *loaded.responsibilities,
        *loaded.memories,
        *(one.skill for one in (given.skills if given else ())),
    ]
    files = [*(one.file for one in given.files), *(one.file for one in given.skills)] if given else []
    return dict(
        [
            *(get_url_key(row, row.kind) for row in rows if row is not None),
            *(get_url_key(file, "context_file") for file in files if file is not None),
        ]
    )


def build_compiled_preview(made: BuildResult, stored: PromptVersion | None) -> PreviewResult:
    return PreviewResult(
        made.prompt.segments,
        made.collected.layout,
        made.sizes,
        build_prompt_report(made.prompt, made.collected.problems),
        made.collected.token_budget,
        stored,
    )


def fill_preview_slots(shown: PreviewResult, slots: SlotForm) -> PreviewResult:
    """As a call would get it; what the call says is counted too."""
    segments = fill_form_slots(shown.segments, slots)
    texts = get_texts_by_section(segments)
    sizes = {section: [len(text), count_tokens_cached(text)] for section, text in texts.items()}
    return replace(shown, segments=segments, sizes=sizes, is_filled=True)

"""A prompt ready to be shown in the Studio: stored or drafted, with size, losses and what is new."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from patiencediff import PatienceSequenceMatcher

from personas.models import Record
from prompts.assembly.report import Boundary, boundaries
from prompts.assembly.segments import SESSION, TURN, Segment
from prompts.assembly.sizes import section_texts
from prompts.builds.compiler import Compiled, report_of, tokens_in
from prompts.models import AgentPrompt, PromptVersion
from prompts.preview.impact import tokens_behind
from prompts.preview.services import Preview
from prompts.provenance.origins import RecordKey, key_of
from prompts.studio.slot_form import SlotForm, filled_in
from prompts.versions.segments import digests_in, unpacked
from prompts.versions.selectors import contents_of, report_in

# Beyond this nobody looks for single lines, and looking takes too long while somebody types.
LONGEST = 400_000
Range = tuple[int, int]


@dataclass(frozen=True)
class Edits:
    """Stretches of the newer text that the older has not, in order; and lines that fell away, by offset."""

    ranges: Sequence[Range] = ()
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


NONE = Edits()


def edits_between(before: str, after: str) -> Edits:
    """Whole lines, for a line is what people read."""
    if before == after or len(before) + len(after) > LONGEST:
        return NONE
    old, new = before.split("\n"), after.split("\n")
    offsets = [0, *accumulate(len(line) + 1 for line in new)]
    ranges: list[Range] = []
    gone: dict[int, int] = {}
    for kind, i1, i2, j1, j2 in PatienceSequenceMatcher(None, old, new).get_opcodes():
        if kind == "equal":
            continue
        if any(line.strip() for line in new[j1:j2]):
            ranges.append((offsets[j1], min(offsets[j2], len(after))))
        lost = sum(bool(line.strip()) for line in old[i1:i2]) - sum(bool(line.strip()) for line in new[j1:j2])
        if lost > 0:
            gone[min(offsets[j1], len(after))] = lost
    return Edits(ranges, gone)


@dataclass(frozen=True)
class Shown:
    """The text in segments, and all that is said above it."""

    segments: Sequence[Segment]
    layout: str
    # Characters and tokens of each section.
    sizes: dict[str, list[int]]
    report: dict[str, Any] = field(default_factory=dict)
    budget: int | None = None
    # The version that is stored, to compare the size with.
    stored: PromptVersion | None = None
    edits: Edits = NONE
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
    def boundaries(self) -> Sequence[Boundary]:
        offsets = accumulate([len(segment.text) for segment in self.segments], initial=0)
        return boundaries((one.volatility, at) for one, at in zip(self.segments, offsets, strict=False))

    @property
    def cached_tokens(self) -> int:
        """How much a provider's cache can keep from call to call: all before the first words of a call."""
        end = call_begins(self.segments)
        texts = section_texts(self.segments)
        counts = [(said, self.sizes[section][1]) for section, said in texts.items() if section in self.sizes]
        return max(0, self.tokens - tokens_behind(counts, end))


def call_begins(segments: Sequence[Segment]) -> int:
    at = 0
    for segment in segments:
        if segment.volatility in (SESSION, TURN):
            break
        at += len(segment.text)
    return at


def stored_shown(prompt: AgentPrompt, version: PromptVersion, budget: int | None) -> Shown:
    """What is stored is what is saved, as long as nothing waits to be built; nothing is assembled."""
    digests = [*digests_in(version.segments), version.report]
    contents = contents_of(version.workspace_id, digests)
    segments = unpacked(version.segments, contents)
    return Shown(
        segments, version.layout, version.sizes, report_in(contents, version), budget, stored=prompt.latest
    )


def drafted_shown(found: Preview, stored: PromptVersion | None, slots: SlotForm | None = None) -> Shown:
    """The draft's prompt, the lines lit that the saved record has not; else NotBuildable."""
    shown = replace(made_shown(found.made(), stored), keys=keys_in(found))
    saved = found.as_saved() if found.draft else None
    if slots is not None and slots.is_asked:
        shown = with_slots(shown, slots)
    if saved is None:
        return shown
    before: Sequence[Segment] = saved.made().prompt.segments
    if shown.is_filled and slots is not None:
        before = filled_in(before, slots)
    return replace(shown, edits=edits_between("".join([one.text for one in before]), shown.text))


def keys_in(found: Preview) -> dict[RecordKey, str]:
    """Of all that was loaded for it; files and skills as they were given."""
    loaded, agent = found.loaded, found.gathered.agent
    settings = [part for row in loaded.settings for part in (row.identity, row.soul, row.user_profile)]
    given = loaded.given.get(agent.pk)
    rows: list[Record | None] = [
        *(agent, agent.identity, agent.soul, agent.user_profile, found.gathered.channel),
        *settings,
        *(link.tool for link in loaded.tool_links),
        *loaded.duties,
        *loaded.memories,
        *(one.skill for one in (given.skills if given else ())),
    ]
    files = [*(one.file for one in given.files), *(one.file for one in given.skills)] if given else []
    return dict(
        [
            *(key_of(row, row.kind) for row in rows if row is not None),
            *(key_of(file, "context_file") for file in files if file is not None),
        ]
    )


def made_shown(made: Compiled, stored: PromptVersion | None) -> Shown:
    return Shown(
        made.prompt.segments,
        made.gathered.layout,
        made.sizes,
        report_of(made.prompt, made.gathered.problems),
        made.gathered.token_budget,
        stored,
    )


def with_slots(shown: Shown, slots: SlotForm) -> Shown:
    """As a call would get it; what the call says is counted too."""
    segments = filled_in(shown.segments, slots)
    texts = section_texts(segments)
    sizes = {section: [len(text), tokens_in(text)] for section, text in texts.items()}
    return replace(shown, segments=segments, sizes=sizes, is_filled=True)

"""What differs between two versions: by section, word and place, and what a cache must read anew; pure."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from sys import maxsize
from typing import Literal, TypeVar

from django.utils.translation import gettext as _

from core.text.diff import Line, Span, diff_lines
from prompts.assembly.segments import SESSION, TURN, Origin, Segment

Count = Callable[[str], int]
State = Literal["same", "changed", "added", "removed"]
K = TypeVar("K", bound=Hashable)
# Both texts together, over all sections: more than anybody reads, and still well under a second.
MOST_CHARACTERS, MOST_LINES = 300_000, 20_000


@dataclass(frozen=True)
class Moved:
    """Words that are the same and stand elsewhere."""

    origin: Origin
    text: str
    before: str
    after: str


@dataclass(frozen=True)
class SectionDiff:
    """One section of both versions; the gap before it is not part of it."""

    name: str
    state: State
    tokens_before: int
    tokens_after: int
    lines: Sequence[Line] = ()
    # The section as a whole stands before or behind others than it did.
    is_moved: bool = False
    # Why there are no lines although something changed.
    withheld: str = ""

    @property
    def token_delta(self) -> int:
        return self.tokens_after - self.tokens_before


@dataclass(frozen=True)
class Prefix:
    """How far both texts begin alike: a provider's cache of the older one is good up to there."""

    kept_characters: int
    kept_tokens: int
    rewritten_tokens: int
    # The section the first difference falls into; empty when the texts are equal.
    section: str = ""
    # The first difference stands behind words that every call fills anew, where no cache reaches.
    is_beyond_cache: bool = False


@dataclass(frozen=True)
class VersionDiff:
    sections: Sequence[SectionDiff]
    moved: Sequence[Moved]
    prefix: Prefix

    @property
    def changed(self) -> list[SectionDiff]:
        return [section for section in self.sections if section.state != "same" or section.is_moved]

    @property
    def token_delta(self) -> int:
        return sum(section.token_delta for section in self.sections)


def compare(
    before: Sequence[Segment], after: Sequence[Segment], count: Count, budget: "Budget | None" = None
) -> VersionDiff:
    """Everything there is to say about two versions of a prompt; many comparisons may share a budget."""
    return VersionDiff(
        section_diffs(section_words(before), section_words(after), count, budget or Budget()),
        moved_segments(before, after),
        cache_prefix(before, after, count),
    )


# --- sections ------------------------------------------------------------------------------------------


def section_words(segments: Iterable[Segment]) -> dict[str, str]:
    """What each section says, in the prompt's order, without the gap it begins with."""
    pieces: dict[str, list[str]] = {}
    for segment in segments:
        if segment.section in pieces:
            pieces[segment.section].append(segment.text)
        else:
            pieces[segment.section] = [segment.text[segment.lead :]]
    return {section: "".join(texts) for section, texts in pieces.items()}


def section_diffs(
    before: Mapping[str, str], after: Mapping[str, str], count: Count, budget: "Budget"
) -> list[SectionDiff]:
    """In the order of the newer text; what fell away comes last."""
    moved = set(out_of_order([*before], [*after]))
    order = [*after, *(section for section in before if section not in after)]
    found = [section_diff(name, before.get(name), after.get(name), budget, count) for name in order]
    return [replace(section, is_moved=section.name in moved) for section in found]


def section_diff(name: str, old: str | None, new: str | None, budget: "Budget", count: Count) -> SectionDiff:
    said, says = old or "", new or ""
    tokens = count(said), count(says)
    if said == says:
        return SectionDiff(name, "same", *tokens)
    state: State = "added" if old is None else "removed" if new is None else "changed"
    if not budget.take(said, says):
        reason = _("%(count)s characters are too many to compare line by line.") % {
            "count": f"{len(said) + len(says):,}"
        }
        return SectionDiff(name, state, *tokens, withheld=reason)
    lines = diff_lines(said, says) if state == "changed" else whole(said, says)
    return SectionDiff(name, state, *tokens, lines)


def whole(old: str, new: str) -> list[Line]:
    """A section that only one version has: nothing to mark, for all of it is new or gone."""
    if new:
        return [Line("added", (Span(line),), after=at) for at, line in enumerate(new.split("\n"), 1)]
    return [Line("removed", (Span(line),), before=at) for at, line in enumerate(old.split("\n"), 1)]


class Budget:
    """How much may still be compared line by line; what does not fit is told, not compared."""

    def __init__(self) -> None:
        self.characters, self.lines = MOST_CHARACTERS, MOST_LINES

    def take(self, *texts: str) -> bool:
        characters = sum(map(len, texts))
        lines = sum(text.count("\n") + 1 for text in texts)
        if characters > self.characters or lines > self.lines:
            return False
        self.characters -= characters
        self.lines -= lines
        return True


# --- places --------------------------------------------------------------------------------------------


def moved_segments(before: Sequence[Segment], after: Sequence[Segment]) -> list[Moved]:
    """Records whose words are the same and stand elsewhere among those that both versions have."""
    old, new = placed(before), placed(after)
    shared = [key for key in new if key in old]
    elsewhere = {key for key in shared if old[key].section != new[key].section}
    for section in dict.fromkeys(new[key].section for key in shared):
        mine = [key for key in shared if new[key].section == section and key not in elsewhere]
        known = set(mine)
        elsewhere |= set(out_of_order([key for key in old if key in known], mine))
    return [Moved(key[0], key[1], old[key].section, new[key].section) for key in shared if key in elsewhere]


def placed(segments: Sequence[Segment]) -> dict[tuple[Origin, str], Segment]:
    """Words of records, each with its one place; what stands twice has no place to move from."""
    keyed = [
        ((segment.origin._replace(revision=0), segment.text.strip()), segment)
        for segment in segments
        if segment.origin.id or segment.origin.path
    ]
    times = Counter([key for key, _ in keyed])
    return {key: segment for key, segment in keyed if times[key] == 1 and key[1]}


def out_of_order(before: Sequence[K], after: Sequence[K]) -> list[K]:
    """The fewest of the shared ones that must have moved to explain the new order."""
    places = {key: place for place, key in enumerate(before)}
    shared = [key for key in after if key in places]
    kept = longest_rise([places[key] for key in shared])
    return [key for at, key in enumerate(shared) if at not in kept]


def longest_rise(numbers: Sequence[int]) -> set[int]:
    """The positions of a longest rising run, gaps allowed."""
    ends: list[int] = []
    chains: list[int] = []
    parents: list[int] = []
    for at, number in enumerate(numbers):
        length = bisect_left(ends, number)
        parents.append(chains[length - 1] if length else -1)
        if length == len(ends):
            ends.append(number)
            chains.append(at)
        else:
            ends[length], chains[length] = number, at
    kept: set[int] = set()
    at = chains[-1] if chains else -1
    while at >= 0:
        kept.add(at)
        at = parents[at]
    return kept


# --- the cache -----------------------------------------------------------------------------------------


def cache_prefix(before: Sequence[Segment], after: Sequence[Segment], count: Count) -> Prefix:
    old, new = (text_of(segments) for segments in (before, after))
    kept = common_length(old, new)
    if old == new:
        return Prefix(kept, count(new), 0)
    reach = min(first_per_call(before), first_per_call(after))
    section = section_at(after, kept) or section_at(before, kept)
    return Prefix(kept, count(new[:kept]), count(new[kept:]), section, kept >= reach)


def text_of(segments: Iterable[Segment]) -> str:
    return "".join([segment.text for segment in segments])


def common_length(one: str, other: str) -> int:
    """How many characters both begin with; halving, since comparing slices is quick."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def first_per_call(segments: Iterable[Segment]) -> int:
    """Where the words begin that differ from call to call; out of reach when there are none."""
    at = 0
    for segment in segments:
        if segment.volatility in (SESSION, TURN):
            return at
        at += len(segment.text)
    return maxsize


def section_at(segments: Iterable[Segment], offset: int) -> str:
    at = 0
    for segment in segments:
        at += len(segment.text)
        if at > offset:
            return segment.section
    return ""

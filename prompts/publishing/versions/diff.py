"""Compare two versions: changed sections and words, moved segments, and the common cache prefix. Pure."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from sys import maxsize
from typing import Literal, TypeVar

from django.utils.translation import gettext as _

from core.text.diff import DiffLine, DiffSpan, diff_lines
from prompts.assembly.segments import SESSION, TURN, Origin, Segment, get_texts_by_section
from prompts.assembly.sizes import measure_sections
from prompts.publishing.versions.tool_definitions import DefinitionJson, encode_definition, format_definition

TokenCounter = Callable[[str], int]
SectionStatus = Literal["same", "changed", "added", "removed"]
DiffKind = Literal["section", "tool", "skill_file"]
# Texts by name of the skill files that differ, in the older and in the newer version.
SkillFilePair = tuple[Mapping[str, str], Mapping[str, str]]
# The tool definitions of the older and the newer version.
DefinitionPair = tuple[Sequence[DefinitionJson], Sequence[DefinitionJson]]
# Characters and tokens of each section, in the older and in the newer version.
SizePair = tuple[Mapping[str, Sequence[int]], Mapping[str, Sequence[int]]]
K = TypeVar("K", bound=Hashable)
# Limits for both texts together, over all sections. Comparing this much takes well under a second.
MAX_CHARACTERS, MAX_LINES = 300_000, 20_000
NO_SKILL_FILES: SkillFilePair = ({}, {})


@dataclass(frozen=True)
class MovedSegment:
    """A segment with the same text in another place; `before` and `after` are section names."""

    origin: Origin
    text: str
    before: str
    after: str


@dataclass(frozen=True)
class SectionDiff:
    """Differences of one section; the blank lines before the section are not compared."""

    name: str
    status: SectionStatus
    tokens_before: int
    tokens_after: int
    lines: Sequence[DiffLine] = ()
    # Whether the position of the section among the other sections changed.
    is_moved: bool = False
    # Why there are no lines although something changed.
    withheld: str = ""
    # Whether `name` is that of a section of the text, of a tool definition, or of a skill file.
    kind: DiffKind = "section"

    @property
    def token_delta(self) -> int:
        return self.tokens_after - self.tokens_before

    @property
    def is_tool(self) -> bool:
        return self.kind == "tool"

    @property
    def is_skill_file(self) -> bool:
        return self.kind == "skill_file"


@dataclass(frozen=True)
class CachePrefix:
    """The common prefix of both texts, for which a provider's prompt cache of the older text stays valid."""

    kept_characters: int
    kept_tokens: int
    rewritten_tokens: int
    # The section that contains the first difference; empty when the texts are equal.
    section: str = ""
    # Whether the first difference is in or after text that changes per session or call and is never cached.
    is_beyond_cache: bool = False


@dataclass(frozen=True)
class VersionDiff:
    sections: Sequence[SectionDiff]
    moved: Sequence[MovedSegment]
    prefix: CachePrefix
    # The tool definitions, which are sent with the text.
    tools: Sequence[SectionDiff] = ()
    # The changed skill files, which bots read separately. They are not counted in the tokens of the prompt.
    skill_files: Sequence[SectionDiff] = ()

    @property
    def changed(self) -> list[SectionDiff]:
        return list_changed_sections(self.sections)

    @property
    def changed_tools(self) -> list[SectionDiff]:
        return list_changed_sections(self.tools)

    @property
    def all_changed(self) -> list[SectionDiff]:
        """The changed sections, then the changed tool definitions and skill files."""
        return [*self.changed, *self.changed_tools, *self.skill_files]

    @property
    def token_delta(self) -> int:
        return sum(section.token_delta for section in (*self.sections, *self.tools))


def list_changed_sections(sections: Iterable[SectionDiff]) -> list[SectionDiff]:
    return [section for section in sections if section.status != "same" or section.is_moved]


def compare_segments(
    before: Sequence[Segment],
    after: Sequence[Segment],
    count: TokenCounter,
    budget: "DiffBudget | None" = None,
    tools: DefinitionPair = ((), ()),
    *,
    skill_files: SkillFilePair = NO_SKILL_FILES,
    sizes: SizePair | None = None,
) -> VersionDiff:
    """Compare segments, tool definitions and skill files of two versions.

    Several comparisons may share one budget.

    `sizes` are the stored ones of the versions. They stay the same after text of a version was erased.
    """
    budget = budget or DiffBudget()
    # The same numbers as on the page of a version, where a section includes the line breaks before it.
    old, new = sizes or (measure_sections(before, count), measure_sections(after, count))
    sections = diff_sections(join_section_texts(before), join_section_texts(after), lambda _: 0, budget)
    definitions = diff_definitions(*tools, count, budget)
    return VersionDiff(
        [
            replace(
                section,
                tokens_before=old.get(section.name, (0, 0))[1],
                tokens_after=new.get(section.name, (0, 0))[1],
            )
            for section in sections
        ],
        find_moved_segments(before, after),
        measure_cache_prefix(before, after, count, new, definitions),
        definitions,
        diff_skill_files(*skill_files, budget),
    )


# --- sections ------------------------------------------------------------------------------------------


def join_section_texts(segments: Iterable[Segment]) -> dict[str, str]:
    """Return the text of each section, in the prompt's order, without its leading blank lines."""
    texts_by_section: dict[str, list[str]] = {}
    for segment in segments:
        if segment.section in texts_by_section:
            texts_by_section[segment.section].append(segment.text)
        else:
            texts_by_section[segment.section] = [segment.text[segment.lead :]]
    return {section: "".join(texts) for section, texts in texts_by_section.items()}


def diff_sections(
    before: Mapping[str, str], after: Mapping[str, str], count: TokenCounter, budget: "DiffBudget"
) -> list[SectionDiff]:
    """Compare section by section, in the order of the newer text; removed sections come last."""
    moved = set(find_out_of_order([*before], [*after]))
    order = [*after, *(section for section in before if section not in after)]
    sections = [diff_section(name, before.get(name), after.get(name), budget, count) for name in order]
    return [replace(section, is_moved=section.name in moved) for section in sections]


def diff_definitions(
    before: Sequence[DefinitionJson],
    after: Sequence[DefinitionJson],
    count: TokenCounter,
    budget: "DiffBudget",
) -> list[SectionDiff]:
    """Compare tool definitions by name, line by line in their indented form."""
    old, new = ({str(one["name"]): one for one in definitions} for definitions in (before, after))
    old_texts, new_texts = (
        {name: format_definition(one) for name, one in definitions.items()} for definitions in (old, new)
    )
    tokens = [
        {name: count(encode_definition(one)) for name, one in definitions.items()}
        for definitions in (old, new)
    ]
    return [
        replace(
            section,
            tokens_before=tokens[0].get(section.name, 0),
            tokens_after=tokens[1].get(section.name, 0),
            kind="tool",
        )
        for section in diff_sections(old_texts, new_texts, lambda _: 0, budget)
    ]


def diff_skill_files(
    before: Mapping[str, str], after: Mapping[str, str], budget: "DiffBudget"
) -> list[SectionDiff]:
    """Compare the skill files by name."""
    files = diff_sections(before, after, lambda _: 0, budget)
    return [replace(file, kind="skill_file", is_moved=False) for file in files if file.status != "same"]


def diff_section(
    name: str, old: str | None, new: str | None, budget: "DiffBudget", count: TokenCounter
) -> SectionDiff:
    old_text, new_text = old or "", new or ""
    tokens = count(old_text), count(new_text)
    if old_text == new_text:
        return SectionDiff(name, "same", *tokens)
    status: SectionStatus = "added" if old is None else "removed" if new is None else "changed"
    if not budget.take(old_text, new_text):
        reason = _("Too long to compare line by line: %(count)s characters.") % {
            "count": f"{len(old_text) + len(new_text):,}"
        }
        return SectionDiff(name, status, *tokens, withheld=reason)
    lines = (
        diff_lines(old_text, new_text) if status == "changed" else build_one_sided_lines(old_text, new_text)
    )
    return SectionDiff(name, status, *tokens, lines)


def build_one_sided_lines(old: str, new: str) -> list[DiffLine]:
    """Build the lines of an added or removed section; no words are highlighted."""
    if new:
        return [DiffLine("added", (DiffSpan(line),), after=at) for at, line in enumerate(new.split("\n"), 1)]
    return [DiffLine("removed", (DiffSpan(line),), before=at) for at, line in enumerate(old.split("\n"), 1)]


class DiffBudget:
    """Limit on the text compared line by line; sections beyond it are reported without lines."""

    def __init__(self) -> None:
        self.characters, self.lines = MAX_CHARACTERS, MAX_LINES

    def take(self, *texts: str) -> bool:
        characters = sum(map(len, texts))
        lines = sum(text.count("\n") + 1 for text in texts)
        if characters > self.characters or lines > self.lines:
            return False
        self.characters -= characters
        self.lines -= lines
        return True


# --- moved segments ------------------------------------------------------------------------------------


def find_moved_segments(before: Sequence[Segment], after: Sequence[Segment]) -> list[MovedSegment]:
    """Find segments of records with unchanged text whose section or relative order changed."""
    old, new = index_unique_segments(before), index_unique_segments(after)
    shared = [key for key in new if key in old]
    moved = {key for key in shared if old[key].section != new[key].section}
    for section in dict.fromkeys(new[key].section for key in shared):
        section_keys = [key for key in shared if new[key].section == section and key not in moved]
        section_key_set = set(section_keys)
        moved |= set(find_out_of_order([key for key in old if key in section_key_set], section_keys))
    return [
        MovedSegment(key[0], key[1], old[key].section, new[key].section) for key in shared if key in moved
    ]


def index_unique_segments(segments: Sequence[Segment]) -> dict[tuple[Origin, str], Segment]:
    """Index segments of records by origin and text; duplicates are left out, as their moves are ambiguous."""
    keyed = [
        ((segment.origin._replace(revision=0), segment.text.strip()), segment)
        for segment in segments
        if segment.origin.id or segment.origin.path
    ]
    counts = Counter([key for key, _ in keyed])
    return {key: segment for key, segment in keyed if counts[key] == 1 and key[1]}


def find_out_of_order(before: Sequence[K], after: Sequence[K]) -> list[K]:
    """Return the smallest set of shared items whose moves explain the new order."""
    positions = {key: position for position, key in enumerate(before)}
    shared = [key for key in after if key in positions]
    kept = find_longest_increasing_run([positions[key] for key in shared])
    return [key for at, key in enumerate(shared) if at not in kept]


def find_longest_increasing_run(numbers: Sequence[int]) -> set[int]:
    """Return the positions of a longest increasing subsequence."""
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


# --- cache prefix --------------------------------------------------------------------------------------


def measure_cache_prefix(
    before: Sequence[Segment],
    after: Sequence[Segment],
    count: TokenCounter,
    sizes: Mapping[str, Sequence[int]],
    tools: Sequence[SectionDiff] = (),
) -> CachePrefix:
    """Measure the common prefix. Kept and rewritten tokens add up to the tokens of the newer version.

    `sizes` are those of the newer version: a section counts with the tokens that a plain fetch sends.
    Definitions of tools are kept if none of them changed.
    """
    old, new = (join_segment_texts(segments) for segments in (before, after))
    kept = count_common_prefix(old, new)
    rewritten = count_rewritten_tokens(after, kept, count, sizes) if old != new else 0
    if list_changed_sections(tools):
        rewritten += sum(tool.tokens_after for tool in tools)
    total = sum(tokens for _characters, tokens in sizes.values()) + sum(tool.tokens_after for tool in tools)
    if old == new:
        return CachePrefix(kept, total - rewritten, rewritten)
    reach = min(find_per_call_offset(before), find_per_call_offset(after))
    section = find_section_at(after, kept) or find_section_at(before, kept)
    return CachePrefix(kept, total - rewritten, rewritten, section, kept >= reach)


def count_rewritten_tokens(
    segments: Sequence[Segment], kept: int, count: TokenCounter, sizes: Mapping[str, Sequence[int]]
) -> int:
    """Count the tokens after `kept` characters; only the rest of one section must be counted again."""
    at, tokens = 0, 0
    for section, text in get_texts_by_section(segments).items():
        end, size = at + len(text), sizes.get(section, (0, 0))[1]
        if at >= kept:
            tokens += size
        elif end > kept:
            tokens += min(count(text[kept - at :]), size)
        at = end
    return tokens


def join_segment_texts(segments: Iterable[Segment]) -> str:
    return "".join([segment.text for segment in segments])


def count_common_prefix(one: str, other: str) -> int:
    """Return the length of the common prefix, by binary search: comparing slices is fast."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def find_per_call_offset(segments: Iterable[Segment]) -> int:
    """Return the offset of the first text that changes per session or call; maxsize if there is none."""
    at = 0
    for segment in segments:
        if segment.volatility in (SESSION, TURN):
            return at
        at += len(segment.text)
    return maxsize


def find_section_at(segments: Iterable[Segment], offset: int) -> str:
    at = 0
    for segment in segments:
        at += len(segment.text)
        if at > offset:
            return segment.section
    return ""

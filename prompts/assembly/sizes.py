"""How large a prompt is, section by section: where to look first when it costs too much."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from prompts.assembly.builder import AssembledPrompt
from prompts.assembly.segments import Segment

# Injected: which tokens a model sees is not for the pure core to know.
TokenCounter = Callable[[str], int]


class SectionSize(NamedTuple):
    """One row: a section's characters, its tokens if somebody counts them, and its share of the whole."""

    section: str
    characters: int
    tokens: int | None
    share: float


def list_section_sizes(prompt: AssembledPrompt, count: TokenCounter | None = None) -> list[SectionSize]:
    """A row for each section that stands in the prompt, the biggest contributor first."""
    whole = len(prompt.text)
    rows = [
        SectionSize(section, len(text), count(text) if count else None, len(text) / whole)
        for section, text in get_texts_by_section(prompt.segments).items()
    ]
    # Sorting keeps equals in their order, so the same prompt always gives the same table.
    return sorted(rows, key=lambda row: -row.characters)


def sum_section_sizes(rows: Sequence[SectionSize]) -> SectionSize:
    """The whole prompt as one row; tokens may differ a little where two sections meet."""
    tokens = [row.tokens for row in rows if row.tokens is not None]
    return SectionSize("total", sum([row.characters for row in rows]), sum(tokens) if tokens else None, 1.0)


def get_texts_by_section(segments: Sequence[Segment]) -> dict[str, str]:
    """What each section says, in the prompt's order; with a section goes the gap before it."""
    pieces: dict[str, list[str]] = {}
    for segment in segments:
        pieces.setdefault(segment.section, []).append(segment.text)
    return {section: "".join(texts) for section, texts in pieces.items() if any(texts)}

"""How large a prompt is, section by section: where to look first when it costs too much."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from prompts.assembly.builder import Prompt
from prompts.assembly.segments import Segment

# Injected: which tokens a model sees is not for the pure core to know.
Count = Callable[[str], int]


class Size(NamedTuple):
    """One row: a section's characters, its tokens if somebody counts them, and its share of the whole."""

    section: str
    characters: int
    tokens: int | None
    share: float


def size_table(prompt: Prompt, count: Count | None = None) -> list[Size]:
    """A row for each section that stands in the prompt, the biggest contributor first."""
    whole = len(prompt.text)
    rows = [
        Size(section, len(text), count(text) if count else None, len(text) / whole)
        for section, text in section_texts(prompt.segments).items()
    ]
    # Sorting keeps equals in their order, so the same prompt always gives the same table.
    return sorted(rows, key=lambda row: -row.characters)


def total(rows: Sequence[Size]) -> Size:
    """The whole prompt as one row; tokens may differ a little where two sections meet."""
    tokens = [row.tokens for row in rows if row.tokens is not None]
    return Size("total", sum([row.characters for row in rows]), sum(tokens) if tokens else None, 1.0)


def section_texts(segments: Sequence[Segment]) -> dict[str, str]:
    """What each section says, in the prompt's order; with a section goes the gap before it."""
    pieces: dict[str, list[str]] = {}
    for segment in segments:
        pieces.setdefault(segment.section, []).append(segment.text)
    return {section: "".join(texts) for section, texts in pieces.items() if any(texts)}

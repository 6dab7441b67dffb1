"""Measure the size of each section of a prompt in characters and tokens."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from prompts.assembly.builder import AssembledPrompt
from prompts.assembly.segments import Segment, get_texts_by_section
from prompts.assembly.slots import Slots, fill_segments

# Counts the tokens of a text. The caller supplies it: tokenizers depend on the model and are not in the
# standard library, to which this package is limited.
TokenCounter = Callable[[str], int]
# The slots of a call that sends none: the server fills in only the time. The time is fixed here, so that
# equal prompts have equal sizes.
PLAIN_SLOTS = Slots(now=datetime(2026, 1, 1, 12, tzinfo=UTC), zone="UTC")


class SectionSize(NamedTuple):
    """The characters of a section, its tokens if they were counted, and its share of the prompt."""

    section: str
    characters: int
    tokens: int | None
    share: float


def list_section_sizes(prompt: AssembledPrompt, count: TokenCounter | None = None) -> list[SectionSize]:
    """List the sections of the prompt with their sizes, largest first."""
    total = len(prompt.text)
    rows = [
        SectionSize(section, len(text), count(text) if count else None, len(text) / total)
        for section, text in get_texts_by_section(prompt.segments).items()
    ]
    # The sort is stable, so the same prompt always gives the same table.
    return sorted(rows, key=lambda row: -row.characters)


def measure_sections(segments: Sequence[Segment], count: TokenCounter) -> dict[str, list[int]]:
    """Return the characters of each section as built, and its tokens as a plain fetch sends it.

    A placeholder is text of the build that no call receives. Tokens are therefore counted after the slots
    were filled as for a call that sends none. A section that such a call does not receive has 0 tokens.
    """
    sent = get_plain_texts(segments)
    return {
        section: [len(text), count(sent.get(section, ""))]
        for section, text in get_texts_by_section(segments).items()
    }


def get_plain_texts(segments: Sequence[Segment]) -> dict[str, str]:
    """Return the text of each section as a plain fetch sends it; sections that it omits are missing."""
    return get_texts_by_section(fill_segments(segments, PLAIN_SLOTS))

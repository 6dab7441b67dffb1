"""What the page of a replay shows: words beside their origins, and what the call brought."""

import json
from collections.abc import Sequence
from functools import cached_property

from personas.models import Workspace
from prompts.assembly.pieces import Origin, Segment
from prompts.compiling import tokens_in
from prompts.services.replaying import Replay
from prompts.version_text import Row
from prompts.views.version_pages import Beside, Reading, Section


class ReplayReading(Reading):
    """A replay, read for a page; sizes are those of the words that were said, not of those built."""

    def __init__(self, workspace: Workspace, replay: Replay) -> None:
        super().__init__(workspace, replay.version)
        self.replay = replay

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        return self.replay.segments

    @cached_property
    def pinned(self) -> list[tuple[Origin, str]]:
        """The lockfile is on the page of the version."""
        return []

    def section(self, name: str, rows: Sequence[Row], ends: dict[int, str]) -> Section:
        words = self.seen.text[rows[0].start : rows[-1].end]
        beside = [Beside(row, [self.words_for(origin) for origin in row.origins]) for row in rows]
        slots = [] if self.replay.entry else list(dict.fromkeys(slot for row in rows for slot in row.slots))
        return Section(name, beside, len(words), tokens_in(words), slots)

    @cached_property
    def facts(self) -> list[tuple[str, str]]:
        """What the call brought, by name; what it left out is not told."""
        entry = self.replay.entry
        return (
            [(name.replace("_", " "), in_words(value)) for name, value in entry.slots.items()]
            if entry
            else []
        )


def in_words(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

"""What the page of a replay shows: words beside their origins, and what the call brought."""

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from django.urls import reverse

from personas.models import Workspace
from personas.ui.display_names import title_of
from prompts.assembly.segments import Segment
from prompts.assembly.slots import filled
from prompts.builds.compiler import tokens_in
from prompts.models import PromptVersion
from prompts.proof.canonical import moment as spelled
from prompts.replay.selectors import Surroundings, label_of
from prompts.replay.services import Replay
from prompts.serving import slots_from_json
from prompts.versions.diff import compare
from prompts.versions.diff_views import whole_text
from prompts.versions.page import Beside, Reading, Section, main_kind
from prompts.versions.selectors import segments_of
from prompts.versions.text_rows import Row


class ReplayReading(Reading):
    """A replay, read for a page; sizes are those of the words that were said, not of those built."""

    def __init__(self, workspace: Workspace, replay: Replay) -> None:
        super().__init__(workspace, replay.version)
        self.replay = replay

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        return self.replay.segments

    def section(self, name: str, rows: Sequence[Row], ends: dict[int, str]) -> Section:
        words = self.seen.text[rows[0].start : rows[-1].end]
        beside = [Beside(row, [self.words_for(origin) for origin in row.origins]) for row in rows]
        slots = [] if self.replay.entry else list(dict.fromkeys(slot for row in rows for slot in row.slots))
        return Section(name, beside, len(words), tokens_in(words), slots, "", main_kind(rows))

    @property
    def tokens(self) -> int:
        return sum(section.tokens for section in self.sections)

    @cached_property
    def facts(self) -> list[tuple[str, str]]:
        """What the call brought, by name; what it left out is not told."""
        entry = self.replay.entry
        return [(title_of(name), in_words(value)) for name, value in entry.slots.items()] if entry else []


def against_now(replay: Replay, now: PromptVersion, *, is_whole: bool) -> dict[str, Any]:
    """What was said then beside what the same call would be told now: the slots are filled alike."""
    segments = segments_of(now)
    if replay.entry and not replay.is_erased and not replay.problem:
        segments = filled(segments, slots_from_json(replay.entry.slots))
    found = compare(replay.segments, segments, tokens_in)
    shown = whole_text(found, segments) if is_whole else found.changed
    return {"diff": found, "shown": shown, "is_whole": is_whole}


def steps(workspace: Workspace, replay: Replay, found: Surroundings) -> dict[str, Any]:
    """The changes on both sides of the moment, each with the address of its own moment."""
    told: dict[str, Any] = {"before": found.before, "after": found.after}
    for name, change in (("before", found.before), ("after", found.after)):
        if change:
            place = [workspace.slug, replay.prompt.pk, label_of(replay), spelled(change.at)]
            told[f"{name}_url"] = reverse("time-machine:moment", args=place)
    return told


def in_words(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

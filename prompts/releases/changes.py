"""Group the prompts of a release by diff, so that equal changes are shown once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from personas.models import Workspace
from prompts.builds.compiler import count_tokens_cached
from prompts.models import PromptVersion, ReleaseItem
from prompts.versions.diff import DiffBudget, VersionDiff, compare_segments
from prompts.versions.segments import list_content_digests, list_hashed_values, unpack_segments
from prompts.versions.selectors import get_contents

# Segment lists are compared in chunks to limit memory for releases of a thousand prompts.
CHUNK_SIZE = 100
MAX_COMPARED = 1_000
# Groups shown with a diff; the others list their prompts, each of which links to its own diff page.
MAX_DIFFS = 20
ChangeKey = tuple[Any, ...]


@dataclass
class ReleaseChangeGroup:
    """Prompts with the same change."""

    items: list[ReleaseItem] = field(default_factory=list)
    # None: no earlier version to compare with, or more than MAX_DIFFS groups.
    diff: VersionDiff | None = None
    is_first: bool = False


@dataclass(frozen=True)
class ReleaseChanges:
    """All prompts of a release in groups, largest first; items beyond MAX_COMPARED are uncompared."""

    groups: Sequence[ReleaseChangeGroup]
    uncompared: Sequence[ReleaseItem]

    @property
    def count(self) -> int:
        return sum(len(group.items) for group in self.groups) + len(self.uncompared)

    @property
    def token_delta(self) -> int:
        items = [item for group in self.groups for item in group.items]
        return sum(item.version.tokens - (item.before.tokens if item.before else 0) for item in items)


def group_release_changes(workspace: Workspace | int, items: Sequence[ReleaseItem]) -> ReleaseChanges:
    """Group the items of a release by their change."""
    compared, groups = items[:MAX_COMPARED], dict[ChangeKey, ReleaseChangeGroup]()
    for start in range(0, len(compared), CHUNK_SIZE):
        add_to_groups(workspace, compared[start : start + CHUNK_SIZE], groups)
    ordered = sorted(groups.values(), key=lambda group: -len(group.items))
    compare_groups(workspace, [group for group in ordered if not group.is_first][:MAX_DIFFS])
    return ReleaseChanges(ordered, items[MAX_COMPARED:])


def add_to_groups(
    workspace: Workspace | int, items: Sequence[ReleaseItem], groups: dict[ChangeKey, ReleaseChangeGroup]
) -> None:
    ids = {key for item in items for key in (item.version_id, item.before_id) if key is not None}
    rows = PromptVersion.objects.in_workspace(workspace).filter(pk__in=ids)
    stored = {key: (segments, tools) for key, segments, tools in rows.values_list("pk", "segments", "tools")}
    for item in items:
        key: ChangeKey = (
            ()
            if item.before_id is None
            else build_change_key(stored[item.before_id], stored[item.version_id])
        )
        groups.setdefault(key, ReleaseChangeGroup(is_first=item.before_id is None)).items.append(item)


def build_change_key(before: tuple[list[Any], str], after: tuple[list[Any], str]) -> ChangeKey:
    """Return the changed segments by section, without common ends; equal keys mean equal changes."""
    old, new = group_by_section(before[0]), group_by_section(after[0])
    changed = []
    for name in dict.fromkeys([*new, *old]):
        left, right = trim_common_ends(old.get(name, []), new.get(name, []))
        if left or right:
            changed.append((name, left, right))
    return (*changed, ("tools", *((before[1], after[1]) if before[1] != after[1] else ())))


def group_by_section(rows: Iterable[dict[str, Any]]) -> dict[str, list[ChangeKey]]:
    sections: dict[str, list[ChangeKey]] = {}
    for row in rows:
        sections.setdefault(row["section"], []).append(tuple(list_hashed_values(row)))
    return sections


def trim_common_ends(old: Sequence[ChangeKey], new: Sequence[ChangeKey]) -> tuple[ChangeKey, ChangeKey]:
    """Remove the common prefix and suffix of two lists."""
    shorter = min(len(old), len(new))
    head = next((index for index in range(shorter) if old[index] != new[index]), shorter)
    remaining = shorter - head
    tail = next((index for index in range(remaining) if old[-1 - index] != new[-1 - index]), remaining)
    return tuple(old[head : len(old) - tail]), tuple(new[head : len(new) - tail])


def compare_groups(workspace: Workspace | int, groups: Sequence[ReleaseChangeGroup]) -> None:
    """Diff one prompt of each group, with two queries in total and a shared time budget."""
    pairs = [(group, group.items[0].before_id, group.items[0].version_id) for group in groups]
    rows = PromptVersion.objects.in_workspace(workspace).filter(
        pk__in={key for _, before, after in pairs for key in (before, after)}
    )
    segments = dict(rows.values_list("pk", "segments"))
    contents = get_contents(
        workspace, {digest for one in segments.values() for digest in list_content_digests(one)}
    )
    budget = DiffBudget()
    for group, before, after in pairs:
        segment_lists = [
            unpack_segments(segments[key], contents) for key in (before, after) if key is not None
        ]
        group.diff = compare_segments(segment_lists[0], segment_lists[1], count_tokens_cached, budget)

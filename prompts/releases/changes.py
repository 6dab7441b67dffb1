"""What a release would change: the same difference once, with all prompts it applies to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from personas.models import Workspace
from prompts.builds.compiler import count_tokens_cached
from prompts.models import PromptVersion, ReleaseItem
from prompts.versions.diff import DiffBudget, VersionDiff, compare_segments
from prompts.versions.segments import list_content_digests, list_hashed_values, unpack_segments
from prompts.versions.selectors import get_contents

# Stored lists are compared in chunks, so that a release of a thousand prompts needs no great room.
CHUNK_SIZE = 100
MAX_COMPARED = 1_000
# Differences that are drawn; the others are told with their prompts, each of which has a page of its own.
MAX_DIFFS = 20
ChangeKey = tuple[Any, ...]


@dataclass
class ReleaseChangeGroup:
    """Prompts in which the same words change in the same way."""

    items: list[ReleaseItem] = field(default_factory=list)
    # None: nothing to compare with, or more differences than a page holds.
    diff: VersionDiff | None = None
    is_first: bool = False


@dataclass(frozen=True)
class ReleaseChanges:
    """All prompts of a release in groups, the widest first; those beyond the bound apart."""

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
    """The items of a release by what changes in them."""
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
    """What is other, section by section, without what both begin and end with; equal keys, equal change."""
    old, new = group_by_section(before[0]), group_by_section(after[0])
    changed = []
    for name in dict.fromkeys([*new, *old]):
        left, right = trim_common_ends(old.get(name, []), new.get(name, []))
        if left or right:
            changed.append((name, left, right))
    return (*changed, ("tools", *((before[1], after[1]) if before[1] != after[1] else ())))


def group_by_section(rows: Iterable[dict[str, Any]]) -> dict[str, list[ChangeKey]]:
    found: dict[str, list[ChangeKey]] = {}
    for row in rows:
        found.setdefault(row["section"], []).append(tuple(list_hashed_values(row)))
    return found


def trim_common_ends(old: Sequence[ChangeKey], new: Sequence[ChangeKey]) -> tuple[ChangeKey, ChangeKey]:
    """Both lists without the beginning and the end that they share."""
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    left = shorter - head
    tail = next((at for at in range(left) if old[-1 - at] != new[-1 - at]), left)
    return tuple(old[head : len(old) - tail]), tuple(new[head : len(new) - tail])


def compare_groups(workspace: Workspace | int, groups: Sequence[ReleaseChangeGroup]) -> None:
    """Compare one prompt of each group; two queries for all, and one budget of time."""
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
        words = [unpack_segments(segments[key], contents) for key in (before, after) if key is not None]
        group.diff = compare_segments(words[0], words[1], count_tokens_cached, budget)

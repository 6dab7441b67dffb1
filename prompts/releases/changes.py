"""What a release would change: the same difference once, with all prompts it applies to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from personas.models import Workspace
from prompts.builds.compiler import tokens_in
from prompts.models import PromptVersion, ReleaseItem
from prompts.versions.diff import Budget, VersionDiff, compare
from prompts.versions.segments import digests_in, row_words, unpacked
from prompts.versions.selectors import contents_of

# Stored lists are compared in chunks, so that a release of a thousand prompts needs no great room.
CHUNK = 100
MOST_COMPARED = 1_000
# Differences that are drawn; the others are told with their prompts, each of which has a page of its own.
MOST_DRAWN = 20
Key = tuple[Any, ...]


@dataclass
class Group:
    """Prompts in which the same words change in the same way."""

    items: list[ReleaseItem] = field(default_factory=list)
    # None: nothing to compare with, or more differences than a page holds.
    diff: VersionDiff | None = None
    is_first: bool = False


@dataclass(frozen=True)
class Changes:
    """All prompts of a release in groups, the widest first; those beyond the bound apart."""

    groups: Sequence[Group]
    uncompared: Sequence[ReleaseItem]

    @property
    def count(self) -> int:
        return sum(len(group.items) for group in self.groups) + len(self.uncompared)

    @property
    def token_delta(self) -> int:
        items = [item for group in self.groups for item in group.items]
        return sum(item.version.tokens - (item.before.tokens if item.before else 0) for item in items)


def changes_in(workspace: Workspace | int, items: Sequence[ReleaseItem]) -> Changes:
    """The items of a release by what changes in them."""
    compared, groups = items[:MOST_COMPARED], dict[Key, Group]()
    for start in range(0, len(compared), CHUNK):
        sort_in(workspace, compared[start : start + CHUNK], groups)
    ordered = sorted(groups.values(), key=lambda group: -len(group.items))
    draw(workspace, [group for group in ordered if not group.is_first][:MOST_DRAWN])
    return Changes(ordered, items[MOST_COMPARED:])


def sort_in(workspace: Workspace | int, items: Sequence[ReleaseItem], groups: dict[Key, Group]) -> None:
    ids = {key for item in items for key in (item.version_id, item.before_id) if key is not None}
    rows = PromptVersion.objects.in_workspace(workspace).filter(pk__in=ids)
    stored = {key: (segments, tools) for key, segments, tools in rows.values_list("pk", "segments", "tools")}
    for item in items:
        key: Key = (
            () if item.before_id is None else change_key(stored[item.before_id], stored[item.version_id])
        )
        groups.setdefault(key, Group(is_first=item.before_id is None)).items.append(item)


def change_key(before: tuple[list[Any], str], after: tuple[list[Any], str]) -> Key:
    """What is other, section by section, without what both begin and end with; equal keys, equal change."""
    old, new = sections_in(before[0]), sections_in(after[0])
    changed = []
    for name in dict.fromkeys([*new, *old]):
        left, right = trimmed(old.get(name, []), new.get(name, []))
        if left or right:
            changed.append((name, left, right))
    return (*changed, ("tools", *((before[1], after[1]) if before[1] != after[1] else ())))


def sections_in(rows: Iterable[dict[str, Any]]) -> dict[str, list[Key]]:
    found: dict[str, list[Key]] = {}
    for row in rows:
        found.setdefault(row["section"], []).append(tuple(row_words(row)))
    return found


def trimmed(old: Sequence[Key], new: Sequence[Key]) -> tuple[Key, Key]:
    """Both lists without the beginning and the end that they share."""
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    left = shorter - head
    tail = next((at for at in range(left) if old[-1 - at] != new[-1 - at]), left)
    return tuple(old[head : len(old) - tail]), tuple(new[head : len(new) - tail])


def draw(workspace: Workspace | int, groups: Sequence[Group]) -> None:
    """Compare one prompt of each group; two queries for all, and one budget of time."""
    pairs = [(group, group.items[0].before_id, group.items[0].version_id) for group in groups]
    rows = PromptVersion.objects.in_workspace(workspace).filter(
        pk__in={key for _, before, after in pairs for key in (before, after)}
    )
    segments = dict(rows.values_list("pk", "segments"))
    contents = contents_of(workspace, {digest for one in segments.values() for digest in digests_in(one)})
    budget = Budget()
    for group, before, after in pairs:
        words = [unpacked(segments[key], contents) for key in (before, after) if key is not None]
        group.diff = compare(words[0], words[1], tokens_in, budget)

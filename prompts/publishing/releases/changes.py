"""Group the prompts of a release by their changes, so that a page shows equal changes only once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from personas.models import Workspace
from prompts.models import PromptVersion, ReleaseItem
from prompts.publishing.builds.tokens import count_tokens_cached
from prompts.publishing.versions.diff import CachePrefix, DiffBudget, VersionDiff, compare_segments
from prompts.publishing.versions.segments import list_content_digests, list_hashed_values, unpack_segments
from prompts.publishing.versions.selectors import (
    get_contents,
    hide_contents,
    list_changed_skill_files,
    list_tombstoned_digests,
    parse_definition_pair,
    read_skill_file_pair,
)

# How many items have their segments loaded at once, to limit memory for releases of a thousand prompts.
CHUNK_SIZE = 100
MAX_COMPARED = 1_000
# Number of groups shown with a diff. The other groups only list prompts, which link to their diff pages.
MAX_DIFFS = 20
ChangeKey = tuple[Any, ...]
# As a release stores them: the fields of CachePrefix by prompt id.
StoredPrefixes = Mapping[str, Mapping[str, Any]]


@dataclass
class ReleaseChangeGroup:
    """The items of a release that have the same change."""

    items: list[ReleaseItem] = field(default_factory=list)
    # None for prompts without an earlier version, and for groups after the first MAX_DIFFS.
    diff: VersionDiff | None = None
    # The label was not set on these prompts before, so there is nothing to compare with.
    is_first: bool = False


@dataclass(frozen=True)
class ReleaseChanges:
    """The items of a release, grouped by change, largest group first.

    Items after the first MAX_COMPARED are not grouped; they are listed in `uncompared`.
    """

    groups: Sequence[ReleaseChangeGroup]
    uncompared: Sequence[ReleaseItem]

    @property
    def count(self) -> int:
        return sum(len(group.items) for group in self.groups) + len(self.uncompared)

    @property
    def token_delta(self) -> int:
        items = [item for group in self.groups for item in group.items]
        return sum(item.version.tokens - (item.before.tokens if item.before else 0) for item in items)


def group_release_changes(
    workspace: Workspace | int, items: Sequence[ReleaseItem], prefixes: StoredPrefixes | None = None
) -> ReleaseChanges:
    """Group the items of a release by their change.

    `prefixes` are those that the release stored when it was requested: see `measure_prefixes`.
    """
    compared, groups = items[:MAX_COMPARED], dict[ChangeKey, ReleaseChangeGroup]()
    for start in range(0, len(compared), CHUNK_SIZE):
        add_to_groups(workspace, compared[start : start + CHUNK_SIZE], groups)
    ordered = sorted(groups.values(), key=lambda group: -len(group.items))
    compare_groups(workspace, [group for group in ordered if not group.is_first][:MAX_DIFFS])
    for group in ordered:
        use_stored_prefix(group, prefixes or {})
    return ReleaseChanges(ordered, items[MAX_COMPARED:])


def measure_prefixes(workspace: Workspace | int, items: Sequence[ReleaseItem]) -> dict[str, dict[str, Any]]:
    """Return the cache prefix of each change, by the id of its first prompt.

    A release stores them, because they cannot be computed any more after text of a version was erased.
    """
    groups = group_release_changes(workspace, items).groups
    return {str(group.items[0].prompt_id): asdict(group.diff.prefix) for group in groups if group.diff}


def use_stored_prefix(group: ReleaseChangeGroup, prefixes: StoredPrefixes) -> None:
    """Replace the prefix of a group by the stored one of any of its prompts, if there is one."""
    stored = next((prefixes[key] for item in group.items if (key := str(item.prompt_id)) in prefixes), None)
    if stored is not None and group.diff is not None:
        group.diff = replace(group.diff, prefix=CachePrefix(**stored))


def add_to_groups(
    workspace: Workspace | int, items: Sequence[ReleaseItem], groups: dict[ChangeKey, ReleaseChangeGroup]
) -> None:
    # A first version is compared with nothing, so its segments are not loaded.
    ids = {key for item in items if item.before_id is not None for key in (item.version_id, item.before_id)}
    rows = PromptVersion.objects.in_workspace(workspace).filter(pk__in=ids)
    columns = rows.values_list("pk", "segments", "tools", "skill_files")
    stored = {key: (segments, tools, files) for key, segments, tools, files in columns}
    for item in items:
        key: ChangeKey = (
            ()
            if item.before_id is None
            else build_change_key(stored[item.before_id], stored[item.version_id])
        )
        groups.setdefault(key, ReleaseChangeGroup(is_first=item.before_id is None)).items.append(item)


def build_change_key(
    before: tuple[list[Any], str, list[Any]], after: tuple[list[Any], str, list[Any]]
) -> ChangeKey:
    """Return a key that is equal for prompts with equal changes.

    It contains the old and new segments of each changed section, without their common prefix and suffix, and
    the old and new skill files that changed.
    """
    old, new = group_by_section(before[0]), group_by_section(after[0])
    changed = []
    for name in dict.fromkeys([*new, *old]):
        left, right = trim_common_ends(old.get(name, []), new.get(name, []))
        if left or right:
            changed.append((name, left, right))
    files = [
        tuple((row["name"], row["content"]) for row in rows)
        for rows in list_changed_skill_files(before[2], after[2])
    ]
    return (*changed, ("tools", *((before[1], after[1]) if before[1] != after[1] else ())), *files)


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
    """Set the diff of each group, computed from its first item.

    There are two queries in total, and all diffs share one time budget.
    """
    pairs = [(group, group.items[0].before_id, group.items[0].version_id) for group in groups]
    rows = PromptVersion.objects.in_workspace(workspace).filter(
        pk__in={key for _, before, after in pairs for key in (before, after)}
    )
    columns = rows.values_list("pk", "segments", "tools", "sizes", "skill_files")
    stored = {key: values for key, *values in columns}
    files = {
        id(group): list_changed_skill_files(stored[before][3], stored[after][3])
        for group, before, after in pairs
        if before is not None
    }
    digests = {row["content"] for sides in files.values() for side in sides for row in side}
    for segments, tools, *_rest in stored.values():
        digests |= list_content_digests(segments, tools)
    contents = get_contents(workspace, digests)
    tombstoned = list_tombstoned_digests(workspace, [segments for segments, *_ in stored.values()])
    hidden = dict(zip(stored, tombstoned, strict=True))
    budget = DiffBudget()
    for group, before, after in pairs:
        keys = [key for key in (before, after) if key is not None]
        (old, old_tools, old_sizes, _), (new, new_tools, new_sizes, _) = [stored[key] for key in keys]
        old_contents, new_contents = [hide_contents(contents, hidden[key]) for key in keys]
        tool_contents = hide_contents(contents, set().union(*[hidden[key] for key in keys]))
        group.diff = compare_segments(
            unpack_segments(old, old_contents),
            unpack_segments(new, new_contents),
            count_tokens_cached,
            budget,
            parse_definition_pair(tool_contents, old_tools, new_tools),
            skill_files=read_skill_file_pair(files[id(group)], contents),
            sizes=(old_sizes, new_sizes),
        )

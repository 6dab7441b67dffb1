"""Select the folders of sources to watch for changes, and decide which changes need a refresh."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from stat import S_ISDIR
from typing import Literal

import structlog

from personas.actors import SYSTEM_ACTOR
from skills.discovery.filesystem import FileRefused, SafeRoot
from skills.discovery.harnesses import DiscoveryCaps
from skills.discovery.tree_rules import RuleNode, TreeRules
from skills.models import Source, SourceKind, is_folder_allowed
from skills.refresh.runs import request_refresh
from skills.sources.readers import list_source_harnesses
from skills.tasks import enqueue_refresh_run

log = structlog.get_logger(__name__)

# Limit for each source, because the operating system limits the number of watches. Changes in folders
# beyond this limit are found only by scheduled refreshes.
MAX_WATCHED_FOLDERS = 5_000
MAX_WATCH_DEPTH = DiscoveryCaps().depth

ChangeKind = Literal["added", "modified", "deleted"]
FileChanges = Iterable[tuple[ChangeKind, str]]


@dataclass
class WatchedSource:
    """The watched folders of one source by path, each with the node of the rule tree that applies to it."""

    source: Source
    folders: dict[str, RuleNode] = field(default_factory=dict)
    # Target paths of symbolic links that can lead to a file that a rule matches. A change at or below a
    # target needs a refresh too.
    targets: set[str] = field(default_factory=set)

    def needs_refresh(self, change: ChangeKind, path: str) -> bool:
        """Return whether this change can affect the result of a refresh."""
        folder, name = os.path.split(path)
        node = self.folders.get(folder)
        is_named = node is not None and (name in node.files or node.match_kind(name) is not None)
        return (
            is_named
            or self.changes_folders(change, path)
            or any(is_path_below(path, target) for target in self.targets)
        )

    def changes_folders(self, change: ChangeKind, path: str) -> bool:
        """Return whether the change adds or removes a folder, so that the watch plan must be rebuilt."""
        if path in self.folders:
            return True
        folder, name = os.path.split(path)
        node = self.folders.get(folder)
        if node is None or change == "deleted" or is_skipped_folder(node, name):
            return False
        return is_folder(path) or (os.path.islink(path) and can_lead_to_file(node, name))


@dataclass
class WatchPlan:
    """All watched sources, by source id."""

    watched_sources: dict[int, WatchedSource]
    # The result of `get_plan_basis` when the plan was built. If the current result differs, the plan is out
    # of date.
    basis: Mapping[int, object]

    def list_folders(self) -> list[str]:
        return sorted({path for watched in self.watched_sources.values() for path in watched.folders})

    def find_changed_sources(self, changes: FileChanges) -> set[int]:
        changes = list(changes)
        return {
            pk
            for pk, watched in self.watched_sources.items()
            if any(watched.needs_refresh(*change) for change in changes)
        }

    def find_moved_sources(self, changes: FileChanges) -> set[int]:
        changes = list(changes)
        return {
            pk
            for pk, watched in self.watched_sources.items()
            if any(watched.changes_folders(*change) for change in changes)
        }


def build_watch_plan() -> WatchPlan:
    sources = list_watched_sources()
    # Read before the folders are listed, so that a change in the meantime makes the plan out of date.
    basis = get_plan_basis(sources)
    return WatchPlan({source.pk: build_watched_source(source) for source in sources}, basis)


def list_watched_sources() -> list[Source]:
    """List the active folder sources of all workspaces whose folder operators still allow."""
    rows = Source.unscoped.filter(archived_at=None, source_kind=SourceKind.FOLDER, workspace__deleted_at=None)
    rows = rows.select_related("allowed_folder", "workspace").order_by("pk")
    return [
        source for source in rows if source.allowed_folder and is_folder_allowed(source.allowed_folder.path)
    ]


def get_plan_basis(sources: Iterable[Source]) -> dict[int, object]:
    """Return the data that a watch plan depends on: the revision and the folder identity of each source."""
    return {source.pk: (source.revision, get_folder_identity(source)) for source in sources}


def get_folder_identity(source: Source) -> tuple[int, int] | None:
    """Return device and inode number of the source's folder, or None if it cannot be opened."""
    try:
        with open_source_root(source) as root:
            status = os.fstat(root.fd)
    except (FileRefused, OSError):
        return None
    return status.st_dev, status.st_ino


def open_source_root(source: Source) -> SafeRoot:
    return SafeRoot(source.allowed_folder.path if source.allowed_folder else "", source.folder)


def build_watched_source(source: Source) -> WatchedSource:
    """Build the list of watched folders of one source: the folders that a refresh would search.

    Symbolic links and skipped folders are left out. MAX_WATCHED_FOLDERS and MAX_WATCH_DEPTH apply.
    """
    watched = WatchedSource(source)
    rules = TreeRules(list_source_harnesses(source))
    try:
        with open_source_root(source) as root:
            top = root.path
    except (FileRefused, OSError) as error:
        log.warning("source_watch_failed", source=source.pk, error=str(error))
        return watched
    add_watched_folders(watched, top, rules.root_node)
    if len(watched.folders) >= MAX_WATCHED_FOLDERS:
        log.warning("source_watch_truncated", source=source.pk, folders=MAX_WATCHED_FOLDERS)
    return watched


def add_watched_folders(watched: WatchedSource, top: str, node: RuleNode) -> None:
    """Add `top` and its subfolders breadth-first, so that MAX_WATCHED_FOLDERS leaves out the deepest ones."""
    level = [(top, node)]
    for _ in range(MAX_WATCH_DEPTH + 1):
        remaining = MAX_WATCHED_FOLDERS - len(watched.folders)
        watched.folders.update(level[:remaining])
        level = [
            subfolder
            for path, folder_node in level[:remaining]
            for subfolder in iter_subfolders(watched, path, folder_node)
        ]


def iter_subfolders(watched: WatchedSource, path: str, node: RuleNode) -> Iterator[tuple[str, RuleNode]]:
    try:
        with os.scandir(path) as entries:
            folder_entries = list(entries)
    except OSError:
        # The folder was removed or cannot be read. A refresh reports an unreadable folder as a refusal.
        return
    for entry in folder_entries:
        if entry.is_symlink():
            if can_lead_to_file(node, entry.name):
                watched.targets.add(os.path.realpath(entry.path))
        elif entry.is_dir(follow_symlinks=False) and not is_skipped_folder(node, entry.name):
            yield entry.path, node.get_child(entry.name)


def is_skipped_folder(node: RuleNode, name: str) -> bool:
    return name in node.rules.skipped_folders and not node.get_child(name).remaining_paths


def can_lead_to_file(node: RuleNode, name: str) -> bool:
    return name in node.files or node.match_kind(name) is not None or node.can_lead_to_match(name)


def is_folder(path: str) -> bool:
    try:
        return S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def is_path_below(path: str, other: str) -> bool:
    return path == other or path.startswith(f"{other}/")


def request_refreshes(source_ids: Iterable[int]) -> None:
    """Request and enqueue one refresh per source. The periodic sweep resends runs that the broker lost."""
    pending_ids = set(source_ids)
    for source in list_watched_sources() if pending_ids else []:
        if source.pk in pending_ids:
            enqueue_refresh_run(request_refresh(source, cause="watch", by=SYSTEM_ACTOR))

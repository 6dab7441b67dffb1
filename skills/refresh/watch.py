"""Which folders of sources to keep an eye on, and which changes there are worth a look."""

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
from skills.rule_sets.effective import list_effective_harnesses
from skills.tasks import enqueue_refresh_run

log = structlog.get_logger(__name__)

# The system has only so many watches; what lies beyond is left to the schedule.
MAX_WATCHED_FOLDERS = 5_000
MAX_WATCH_DEPTH = DiscoveryCaps().depth

ChangeKind = Literal["added", "modified", "deleted"]
FileChanges = Iterable[tuple[ChangeKind, str]]


@dataclass
class WatchedSource:
    """The folders of one source, each with what its rules want there."""

    source: Source
    folders: dict[str, RuleNode] = field(default_factory=dict)
    # What links with a wanted name lead to: a change there is a change here.
    targets: set[str] = field(default_factory=set)

    def is_touched(self, what: ChangeKind, path: str) -> bool:
        """Whether what this change says could be told by a new look."""
        folder, name = os.path.split(path)
        node = self.folders.get(folder)
        is_wanted = node is not None and (name in node.files or node.kind_of(name) is not None)
        return is_wanted or self.is_moved(what, path) or any(is_path_below(path, at) for at in self.targets)

    def is_moved(self, what: ChangeKind, path: str) -> bool:
        """Whether folders came, went or were closed, so that others are to be watched."""
        if path in self.folders:
            return True
        folder, name = os.path.split(path)
        node = self.folders.get(folder)
        if node is None or what == "deleted" or is_skipped_folder(node, name):
            return False
        return is_folder(path) or (os.path.islink(path) and can_lead_to_file(node, name))


@dataclass
class WatchPlan:
    """All that is watched at one time."""

    lookouts: dict[int, WatchedSource]
    # What it was made from: another answer means it is out of date.
    basis: Mapping[int, object]

    def folders(self) -> list[str]:
        return sorted({path for lookout in self.lookouts.values() for path in lookout.folders})

    def touched(self, changes: FileChanges) -> set[int]:
        changes = list(changes)
        return {pk for pk, one in self.lookouts.items() if any(one.is_touched(*each) for each in changes)}

    def moved(self, changes: FileChanges) -> set[int]:
        changes = list(changes)
        return {pk for pk, one in self.lookouts.items() if any(one.is_moved(*each) for each in changes)}


def build_watch_plan() -> WatchPlan:
    sources = list_watched_sources()
    # Before anything is listed: what comes meanwhile then makes the survey out of date.
    basis = get_plan_basis(sources)
    return WatchPlan({source.pk: build_watched_source(source) for source in sources}, basis)


def list_watched_sources() -> list[Source]:
    """The live folder sources of every workspace that operators still allow."""
    rows = Source.unscoped.filter(archived_at=None, source_kind=SourceKind.FOLDER)
    rows = rows.select_related("grant", "workspace").order_by("pk")
    return [source for source in rows if source.grant and is_folder_allowed(source.grant.path)]


def get_plan_basis(sources: Iterable[Source]) -> dict[int, object]:
    """What must stay the same for a survey to hold: the sources as they are, and the folders they name."""
    return {source.pk: (source.revision, get_folder_identity(source)) for source in sources}


def get_folder_identity(source: Source) -> tuple[int, int] | None:
    """Which folder it is; None while there is none, so that its coming is noticed."""
    try:
        with open_source_root(source) as root:
            status = os.fstat(root.fd)
    except (FileRefused, OSError):
        return None
    return status.st_dev, status.st_ino


def open_source_root(source: Source) -> SafeRoot:
    return SafeRoot(source.grant.path if source.grant else "", source.folder)


def build_watched_source(source: Source) -> WatchedSource:
    """Folders are listed as a look would walk them: no links, no skipped ones, not too deep or too many."""
    lookout = WatchedSource(source)
    rules = TreeRules(list_effective_harnesses(source.workspace, source.harnesses))
    try:
        with open_source_root(source) as root:
            top = root.path
    except (FileRefused, OSError) as error:
        log.warning("source_watch_failed", source=source.pk, error=str(error))
        return lookout
    add_watched_folders(lookout, top, rules.top)
    if len(lookout.folders) >= MAX_WATCHED_FOLDERS:
        log.warning("source_watch_truncated", source=source.pk, folders=MAX_WATCHED_FOLDERS)
    return lookout


def add_watched_folders(lookout: WatchedSource, top: str, node: RuleNode) -> None:
    """Outermost first, so that what is left out is what lies deepest."""
    level = [(top, node)]
    for _ in range(MAX_WATCH_DEPTH + 1):
        room = MAX_WATCHED_FOLDERS - len(lookout.folders)
        lookout.folders.update(level[:room])
        level = [found for path, at in level[:room] for found in iter_subfolders(lookout, path, at)]


def iter_subfolders(lookout: WatchedSource, path: str, node: RuleNode) -> Iterator[tuple[str, RuleNode]]:
    try:
        with os.scandir(path) as entries:
            listed = list(entries)
    except OSError:
        # Gone since, or closed to us: a look says so in its refusals.
        return
    for entry in listed:
        if entry.is_symlink():
            if can_lead_to_file(node, entry.name):
                lookout.targets.add(os.path.realpath(entry.path))
        elif entry.is_dir(follow_symlinks=False) and not is_skipped_folder(node, entry.name):
            yield entry.path, node.below(entry.name)


def is_skipped_folder(node: RuleNode, name: str) -> bool:
    return name in node.rules.skipped and not node.below(name).begun


def can_lead_to_file(node: RuleNode, name: str) -> bool:
    return name in node.files or node.kind_of(name) is not None or node.leads_on(name)


def is_folder(path: str) -> bool:
    try:
        return S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def is_path_below(path: str, other: str) -> bool:
    return path == other or path.startswith(f"{other}/")


def request_refreshes(source_ids: Iterable[int]) -> None:
    """Ask for one look at each, and hand them over; the sweep finds what the broker does not take."""
    wanted = set(source_ids)
    for source in list_watched_sources() if wanted else []:
        if source.pk in wanted:
            enqueue_refresh_run(request_refresh(source, cause="watch", by=SYSTEM_ACTOR))

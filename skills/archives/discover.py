"""Match pushed files against the discovery rules, with the same kinds, order and caps as a folder on disk.

Files that a rule matches are counted as seen. Scripts and references in a skill's folder belong to the skill
and need no rule. All other unmatched files are reported in a single refusal for the whole push.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from hashlib import sha256

from core.text.sizes import format_size
from skills.archives.bundle import check_file_size, format_refusal_path
from skills.archives.paths import PATH_RULE_NAMES, check_path
from skills.archives.rule_match import FolderRefused, PathMatcher
from skills.discovery import NO_KNOWN_STAMPS, DiscoveredFile, DiscoveryResult, Refusal
from skills.discovery.file_limits import FileSelection, select_files
from skills.discovery.filesystem import FileRefused, FileStamp
from skills.discovery.harnesses import DiscoveryCaps, FileKind, Harness
from skills.discovery.lookup import list_folder_chain
from skills.discovery.search import ROOT_PATH, SearchStopped
from skills.discovery.tree_rules import TreeRules

# The content of a pushed file, or only its stamp if the content is already stored.
PushedContent = bytes | FileStamp
PushedEntry = PushedContent | Refusal


def discover_pushed_files(
    files: Mapping[str, PushedContent],
    harnesses: Sequence[Harness],
    *,
    refusals: Iterable[Refusal] = (),
    known_stamps: Mapping[str, FileStamp] = NO_KNOWN_STAMPS,
    caps: DiscoveryCaps | None = None,
) -> DiscoveryResult:
    """Return the files that any of the harnesses could read in any folder of the push.

    `refusals` are the files that were refused while the push was unpacked. If a rule matches such a file,
    the result contains its refusal, so that the file is not reported as missing.
    """
    refusals_by_path = {refusal.path: refusal for refusal in refusals}
    if ROOT_PATH in refusals_by_path:
        return DiscoveryResult((), (), (refusals_by_path[ROOT_PATH],), 0, 0, is_complete=False)
    effective_caps = reduce(
        DiscoveryCaps.lowest_with, [harness.caps for harness in harnesses], caps or DiscoveryCaps()
    )
    search = PushedFileSearch(effective_caps, known_stamps)
    try:
        unmatched = search.search_entries(
            {**refusals_by_path, **files}, PathMatcher(TreeRules(harnesses), effective_caps.depth)
        )
    except SearchStopped as error:
        return search.build_result(error, is_complete=False)
    return search.build_result(unmatched, is_complete=True)


def build_stamp(content: bytes) -> FileStamp:
    """Build a stamp without modification time and inode: pushed files are compared by content only."""
    return FileStamp(len(content), 0, 0, 0, sha256(content).hexdigest())


class PushedFileSearch:
    """State of one search through a push: discovered files, refusals and counters."""

    def __init__(self, caps: DiscoveryCaps, known_stamps: Mapping[str, FileStamp]) -> None:
        self.caps, self.known_stamps = caps, known_stamps
        self.files: dict[str, DiscoveredFile] = {}
        self.refusals: dict[str, Refusal] = {}
        self.seen_count = self.read_count = self.total_bytes = 0
        self.is_empty = False
        self.selection = FileSelection(set())

    def build_result(self, root_error: FileRefused | None, *, is_complete: bool) -> DiscoveryResult:
        files = tuple([file for file in self.files.values() if file.kind != "skill"])
        skills = tuple([file for file in self.files.values() if file.kind == "skill"])
        root_refusals = [Refusal(ROOT_PATH, root_error.rule, root_error.reason)] if root_error else []
        refusals = (*self.refusals.values(), *root_refusals)
        return DiscoveryResult(
            files,
            skills,
            refusals,
            self.seen_count,
            self.read_count,
            is_complete,
            is_empty=self.is_empty,
            skipped=tuple(self.selection.skipped.values()),
        )

    def search_entries(self, entries: Mapping[str, PushedEntry], matcher: PathMatcher) -> FileRefused | None:
        """Add every matched file. Return one error that describes all unmatched files, or None."""
        self.is_empty = not entries
        if len(entries) > self.caps.entries:
            raise SearchStopped("entries", f"There are more than {self.caps.entries:,} files and folders.")
        kinds = self.match_kinds(entries, matcher)
        skill_folders = {get_parent_folder(path) for path, kind in kinds.items() if kind == "skill"}
        unmatched_paths: list[str] = []
        self.selection = select_files(
            {path: kind for path, kind in kinds.items() if kind}, self.known_stamps, self.caps
        )
        for path, kind in kinds.items():
            if kind:
                self.add_path(kind, path, entries[path])
            elif skill_folders.isdisjoint(list_folder_chain(get_parent_folder(path))):
                unmatched_paths.append(path)
            elif isinstance(refusal := entries[path], Refusal):
                self.add_refusal(path, FileRefused(refusal.rule, refusal.reason))
        self.report_skipped_files()
        return build_unmatched_error(unmatched_paths, entries) if unmatched_paths else None

    def report_skipped_files(self) -> None:
        for folder, folder_error in self.selection.folder_errors.items():
            self.add_refusal(folder, folder_error)
        if error := self.selection.total_error:
            raise SearchStopped(error.rule, error.reason)

    def match_kinds(
        self, entries: Mapping[str, PushedEntry], matcher: PathMatcher
    ) -> dict[str, FileKind | None]:
        """Return the kind of each path, None if no rule matches, in the order of a search on disk.

        Invalid paths are left out and added to the refusals.
        """
        kinds: dict[str, FileKind | None] = {}
        for path in sorted(entries, key=tree_sort_key):
            try:
                check_pushed_path(path, entries[path])
                kinds[path] = matcher.match_kind(path)
            except FolderRefused as error:
                self.add_refusal(error.folder, error)
            except FileRefused as error:
                self.add_refusal(path, error)
        return kinds

    def add_path(self, kind: FileKind, path: str, entry: PushedEntry) -> None:
        self.seen_count += 1
        if path in self.selection.skipped:
            return
        try:
            self.add_file(kind, path, entry)
        except FileRefused as error:
            self.add_refusal(path, error)

    def add_file(self, kind: FileKind, path: str, entry: PushedEntry) -> None:
        if isinstance(entry, Refusal):
            raise FileRefused(entry.rule, entry.reason)
        stamp = entry if isinstance(entry, FileStamp) else build_stamp(entry)
        check_file_size(stamp.size, self.caps)
        if self.total_bytes + stamp.size > self.caps.total_bytes:
            raise FileRefused(
                "total", f"The files have more than {format_size(self.caps.total_bytes)} in total."
            )
        is_new = isinstance(entry, bytes) and self.known_stamps.get(path) != stamp
        self.total_bytes += stamp.size
        self.read_count += is_new
        self.files[path] = DiscoveredFile(
            path, kind, stamp, entry if isinstance(entry, bytes) and is_new else None
        )

    def add_refusal(self, path: str, error: FileRefused) -> None:
        if len(self.refusals) >= self.caps.files:
            raise SearchStopped(
                "files", (f"More than {self.caps.files:,} files were rejected. The rest was skipped.")
            )
        self.refusals.setdefault(path, Refusal(format_refusal_path(path), error.rule, error.reason))


def check_pushed_path(path: str, entry: PushedEntry) -> None:
    """Raise FileRefused for an invalid path.

    If the path was already refused while the push was unpacked, the error has the same reason.
    """
    if isinstance(entry, Refusal) and entry.rule in PATH_RULE_NAMES:
        raise FileRefused(entry.rule, entry.reason)
    check_path(path)


def tree_sort_key(path: str) -> list[tuple[bool, str]]:
    """Return a sort key that puts the files of a folder before its subfolders."""
    *folders, name = path.split("/")
    return [*[(True, folder) for folder in folders], (False, name)]


def get_parent_folder(path: str) -> str:
    return path.rpartition("/")[0]


def build_unmatched_error(unmatched_paths: list[str], entries: Mapping[str, PushedEntry]) -> FileRefused:
    """Describe all unmatched files in one message, with an example path."""
    example = shorten_path(unmatched_paths[0])
    if len(entries) == 1:
        return FileRefused("unnamed", f"No rule matches {example}, so no prompt uses it.")
    subject = f"{len(unmatched_paths):,} of the {len(entries):,} files, for example {example}"
    refused_paths = [path for path in unmatched_paths if isinstance(entries[path], Refusal)]
    refused_note = (
        f" {len(refused_paths):,} of them were rejected, for example {shorten_path(refused_paths[0])}."
        if refused_paths
        else ""
    )
    return FileRefused("unnamed", f"No rule matches {subject}, so no prompt uses them.{refused_note}")


def shorten_path(path: str) -> str:
    return path if len(path) <= 100 else f"…{path[-99:]}"

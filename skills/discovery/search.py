"""Search for the files that a harness reads in a working directory and its parent folders."""

import os
import re
from collections.abc import Callable, Mapping
from itertools import islice

from core.text.sizes import format_size
from skills.discovery.filesystem import (
    FileRefused,
    FileStamp,
    PathMissing,
    PathTrail,
    ResolvedPath,
    SafeRoot,
    convert_os_error,
)
from skills.discovery.harnesses import DiscoveryCaps, FileKind, Harness
from skills.discovery.lookup import (
    SearchFolders,
    build_name_regex,
    get_search_folders,
    join_path,
    search_patterns,
    split_pattern,
)
from skills.discovery.results import (
    FOLDER_FILES_RULE,
    DiscoveredFile,
    DiscoveryResult,
    Refusal,
    escape_path,
)

Clock = Callable[[], float]
# Called after each file with the number of files seen, read and refused so far.
ProgressCallback = Callable[[int, int, int], object]
ROOT_PATH = "."
# Refusal rule for a source whose search takes too long.
TIME_RULE = "time"
# Refusal rule for a folder with too many names.
CUT_FOLDER_RULE = "folder-entries"
# Refusal rules for folders that were searched only in part.
CUT_FOLDER_RULES = (CUT_FOLDER_RULE, FOLDER_FILES_RULE)
# Skipped links are reported one by one up to this number, and then only counted.
MAX_REPORTED_LINKS = 200


class SearchStopped(FileRefused):
    """The search cannot continue: a cap was reached, or the working directory is invalid.

    The files found so far are kept.
    """


class FolderCrowded(FileRefused):
    """A folder has more names than a search lists in one folder. The search continues without the list."""

    def __init__(self, most: int) -> None:
        super().__init__(
            CUT_FOLDER_RULE,
            f"The folder has more than {most:,} entries. Only files and folders that a rule names "
            "without * were read. The rest was skipped.",
        )


class FileSearch:
    """State of one search below a root: discovered files, refusals and counters."""

    def __init__(
        self,
        root: SafeRoot,
        caps: DiscoveryCaps,
        known_stamps: Mapping[str, FileStamp],
        clock: Clock,
        on_progress: ProgressCallback | None,
    ) -> None:
        self.root, self.caps, self.known_stamps, self.clock, self.on_progress = (
            root,
            caps,
            known_stamps,
            clock,
            on_progress,
        )
        self.deadline = clock() + caps.seconds
        # Files that an earlier attempt of this search has read.
        self.read_files: dict[str, DiscoveredFile] = {}
        self.reset()

    def reset(self) -> None:
        self.files: dict[str, DiscoveredFile] = {}
        self.refusals: dict[str, Refusal] = {}
        self.notes: dict[str, Refusal] = {}
        self.cut_folders: list[str] = []
        self.skipped: dict[str, Refusal] = {}
        self.is_empty = False
        self.skipped_links = 0
        self.seen_count = self.read_count = self.total_bytes = self.entries = 0

    def build_result(self, *, is_complete: bool) -> DiscoveryResult:
        files = self.files.values()
        return DiscoveryResult(
            tuple([file for file in files if file.kind != "skill"]),
            tuple([file for file in files if file.kind == "skill"]),
            tuple(self.refusals.values()),
            self.seen_count,
            self.read_count,
            is_complete,
            self.list_notes(),
            tuple(self.cut_folders),
            self.is_empty,
            tuple(self.skipped.values()),
        )

    def list_notes(self) -> tuple[Refusal, ...]:
        if not (more := self.skipped_links - len(self.notes)):
            return tuple(self.notes.values())
        return (
            *self.notes.values(),
            Refusal(ROOT_PATH, "links", f"{more:,} more symbolic links were not followed."),
        )

    # --- caps --------------------------------------------------------------------------------------

    def check_deadline(self) -> None:
        if self.clock() > self.deadline:
            raise SearchStopped(
                TIME_RULE, f"The search took more than {self.caps.seconds:g} seconds. The rest was skipped."
            )

    def is_selected(self, _path: str) -> bool:
        """Return whether the file may be read. A search that found too many files reads a selection."""
        return True

    def count_file(self, _kind: FileKind, path: str) -> None:
        self.check_deadline()
        if self.seen_count == self.caps.files:
            message = f"There are more than {self.caps.files:,} files"
            raise SearchStopped("files", f"{message}. {escape_path(path)} and all later files were skipped.")
        self.seen_count += 1

    def list_folder(self, fd: int, path: str) -> list[os.DirEntry[str]]:
        """List a folder.

        Raise FolderCrowded if it has too many names; they do not count towards the cap for all entries.
        Raise SearchStopped if the cap for all entries would be exceeded. A partial listing is not used,
        because the file system returns entries in arbitrary order.
        """
        remaining = self.caps.entries - self.entries
        with os.scandir(fd) as entries:
            folder_entries = list(islice(entries, min(remaining, self.caps.folder_entries) + 1))
        if len(folder_entries) > self.caps.folder_entries:
            raise FolderCrowded(self.caps.folder_entries)
        self.entries += len(folder_entries)
        if len(folder_entries) > remaining:
            message = f"There are more than {self.caps.entries:,} files and folders"
            raise SearchStopped(
                "entries",
                (f"{message}; {escape_path(path) or 'the root'} and everything after it was skipped."),
            )
        return folder_entries

    def add_refusal(self, path: str, error: FileRefused) -> None:
        if len(self.refusals) >= self.caps.files:
            raise SearchStopped(
                "files", (f"More than {self.caps.files:,} files were rejected. The rest was skipped.")
            )
        self.refusals.setdefault(path, Refusal(escape_path(path) or ROOT_PATH, error.rule, error.reason))

    def add_cut_folder(self, path: str, error: FolderCrowded) -> None:
        self.cut_folders.append(path)
        self.add_refusal(path, error)

    def add_link_note(self, path: str, error: FileRefused) -> None:
        self.skipped_links += 1
        self.notes[path] = Refusal(escape_path(path), error.rule, error.reason)

    def stop(self, error: FileRefused) -> None:
        self.refusals.pop("", None)
        self.refusals[ROOT_PATH] = Refusal(ROOT_PATH, error.rule, error.reason)

    # --- single paths ------------------------------------------------------------------------------

    def search_pattern(self, kind: FileKind, pattern: str) -> bool:
        """Add all files that match the pattern. Return whether there are any."""
        self.check_deadline()
        if "*" not in pattern:
            return self.add_path(kind, pattern)
        above, star, below = split_pattern(pattern)
        matches = [
            self.add_path(kind, join_path(above, name, below)) for name in self.list_names(above, star)
        ]
        return any(matches)

    def list_names(self, folder: str, star: str) -> list[str]:
        is_match = re.compile(build_name_regex(star)).fullmatch
        with PathTrail(self.root) as trail:
            try:
                with trail.open_folder(folder) as fd:
                    return sorted(
                        [entry.name for entry in self.list_folder(fd, folder) if is_match(entry.name)]
                    )
            except PathMissing:
                return []
            except FolderCrowded as error:
                self.add_cut_folder(folder, error)
                return []
            except (FileRefused, OSError) as error:
                self.add_refusal_at(trail, folder, error)
                return []

    def add_path(self, kind: FileKind, path: str) -> bool:
        """Add the file at this path, or its refusal. Return whether the file exists.

        A refused file counts as existing. A file below a refused folder counts as missing.
        """
        if path in self.files:
            return True
        if not path.isprintable():
            self.add_refusal(path, build_unprintable_error(path))
            return True
        if not self.is_selected(path):
            return True
        with PathTrail(self.root) as trail:
            try:
                resolved = trail.resolve(path)
            except PathMissing:
                return False
            except FileRefused as error:
                self.count_file(kind, path)
                return self.add_refusal_at(trail, path, error)
            self.add_file(kind, path, resolved, resolved.path if trail.link_hops else "")
        return True

    def add_refusal_at(self, trail: PathTrail, path: str, error: FileRefused | OSError) -> bool:
        """Add a refusal for the component of the path that could not be resolved.

        Return whether this was the last component, that is, the file itself.
        """
        if isinstance(error, SearchStopped):
            raise error
        names = path.split("/")
        self.add_refusal(
            "/".join(names[: trail.used_names]),
            convert_os_error(error) if isinstance(error, OSError) else error,
        )
        return trail.used_names == len(names)

    def add_file(self, kind: FileKind, path: str, resolved: ResolvedPath, target: str = "") -> None:
        """Read the file unless its stamp is unchanged. If reading fails, only this file is refused."""
        self.count_file(kind, path)
        try:
            stamp, content = self.read_if_changed(path, resolved)
        except FileRefused as error:
            self.add_refusal(path, error)
        else:
            self.total_bytes += stamp.size
            self.files[path] = DiscoveredFile(path, kind, stamp, content, escape_path(target))
        if self.on_progress:
            self.on_progress(self.seen_count, self.read_count, len(self.refusals))

    def read_if_changed(self, path: str, resolved: ResolvedPath) -> tuple[FileStamp, bytes | None]:
        status = resolved.status
        self.root.check(status, self.caps.file_bytes)
        # Unchanged files count too, although they are not read. Otherwise the accepted files would depend on
        # the known stamps.
        if self.total_bytes + status.st_size > self.caps.total_bytes:
            raise FileRefused(
                "total", f"The files have more than {format_size(self.caps.total_bytes)} in total."
            )
        known_stamp = self.known_stamps.get(path)
        if known_stamp and known_stamp.matches(status):
            return known_stamp, None
        self.read_count += 1
        earlier = self.read_files.get(path)
        if earlier and earlier.content is not None and earlier.stamp.matches(status):
            return earlier.stamp, earlier.content
        return self.root.read_file(resolved.folder, resolved.name, self.caps.file_bytes)

    # --- from a working directory upwards ----------------------------------------------------------

    def search_upward(self, working_directory: str, harness: Harness) -> None:
        search_patterns(harness, self.resolve_search_folders(working_directory), self.search_pattern)

    def resolve_search_folders(self, working_directory: str) -> SearchFolders:
        """Return the folders from the root down to the working directory, with links resolved.

        If the working directory cannot be entered, return the parent folders that exist.
        """
        relative_path = self.get_relative_path(working_directory)
        with PathTrail(self.root) as trail:
            try:
                with trail.open_folder(relative_path, is_required=True):
                    real_path = trail.real_path
            except FileRefused as error:
                self.add_refusal(relative_path, error)
                return SearchFolders(get_search_folders("/".join(trail.names), self.caps.depth).each, None)
        if not real_path.isprintable():
            raise SearchStopped("name", build_unprintable_error(real_path).reason)
        folders = get_search_folders(real_path, self.caps.depth)
        if folders.project is None:
            self.add_refusal(real_path, build_depth_error(self.caps.depth))
        return folders

    def get_relative_path(self, working_directory: str) -> str:
        """Return the working directory relative to the root. Raise SearchStopped if it is invalid."""
        if not working_directory.isprintable():
            raise SearchStopped("name", build_unprintable_error(working_directory).reason)
        if ".." in working_directory.split("/"):
            raise SearchStopped("path", "A working directory must not contain “..”.")
        if not working_directory.startswith("/"):
            return working_directory
        if not f"{working_directory}/".startswith(f"{self.root.path}/"):
            raise SearchStopped("outside", "The working directory is outside the source.")
        return working_directory[len(self.root.path) :].strip("/")


def build_unprintable_error(path: str) -> FileRefused:
    return FileRefused("name", f"The name contains unprintable characters: {escape_path(path)}")


def build_depth_error(depth: int) -> FileRefused:
    return FileRefused("depth", f"It is more than {depth} folders below the source's root.")

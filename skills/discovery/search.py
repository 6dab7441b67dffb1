"""One search through one source: what it may still look at, what it found and what it refused."""

import os
import re
from collections.abc import Callable, Mapping
from itertools import islice

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
from skills.discovery.results import DiscoveredFile, DiscoveryResult, Refusal, escape_path

Clock = Callable[[], float]
# Told after each file: how many were seen, read and refused so far.
ProgressCallback = Callable[[int, int, int], object]
ROOT_PATH = "."


class SearchStopped(FileRefused):
    """A cap of the whole search was reached; what was found so far stays."""


class FileSearch:
    """Looks at single paths below a root, and counts."""

    def __init__(
        self,
        root: SafeRoot,
        caps: DiscoveryCaps,
        known: Mapping[str, FileStamp],
        clock: Clock,
        notice: ProgressCallback | None,
    ) -> None:
        self.root, self.caps, self.known, self.clock, self.notice = root, caps, known, clock, notice
        self.deadline = clock() + caps.seconds
        self.files: dict[str, DiscoveredFile] = {}
        self.refusals: dict[str, Refusal] = {}
        self.seen = self.read = self.bytes = self.entries = 0

    def result(self, *, is_complete: bool) -> DiscoveryResult:
        found = self.files.values()
        return DiscoveryResult(
            tuple([file for file in found if file.kind != "skill"]),
            tuple([file for file in found if file.kind == "skill"]),
            tuple(self.refusals.values()),
            self.seen,
            self.read,
            is_complete,
        )

    # --- caps --------------------------------------------------------------------------------------

    def keep_time(self) -> None:
        if self.clock() > self.deadline:
            raise SearchStopped(
                "time", f"Looking took more than {self.caps.seconds:g} seconds; the rest was left out."
            )

    def count_file(self, path: str) -> None:
        self.keep_time()
        if self.seen == self.caps.files:
            most = f"There are more than {self.caps.files:,} files to read"
            raise SearchStopped("files", f"{most}; {escape_path(path)} and all that follow were left out.")
        self.seen += 1

    def listed(self, fd: int, path: str) -> list[os.DirEntry[str]]:
        """A folder that holds too many names counts for nothing: half of it would be a random half."""
        room = self.caps.entries - self.entries
        with os.scandir(fd) as entries:
            listed = list(islice(entries, room + 1))
        self.entries += len(listed)
        if len(listed) > room:
            most = f"There are more than {self.caps.entries:,} names to look at"
            raise SearchStopped(
                "entries", f"{most}; {escape_path(path) or 'the root'} and all that follow were left out."
            )
        return listed

    def refuse(self, path: str, why: FileRefused) -> None:
        if len(self.refusals) >= self.caps.files:
            raise SearchStopped("files", f"More than {self.caps.files:,} refusals; the rest was left out.")
        self.refusals.setdefault(path, Refusal(escape_path(path) or ROOT_PATH, why.rule, why.reason))

    def stop(self, why: FileRefused) -> None:
        self.refusals[ROOT_PATH] = Refusal(ROOT_PATH, why.rule, why.reason)

    # --- single paths ------------------------------------------------------------------------------

    def find(self, kind: FileKind, pattern: str) -> bool:
        """Whether anything is there; all that is gets looked at."""
        self.keep_time()
        if "*" not in pattern:
            return self.take(kind, pattern)
        above, star, below = split_pattern(pattern)
        hits = [self.take(kind, join_path(above, name, below)) for name in self.names(above, star)]
        return any(hits)

    def names(self, folder: str, star: str) -> list[str]:
        fits = re.compile(build_name_regex(star)).fullmatch
        with PathTrail(self.root) as trail:
            try:
                with trail.folder(folder) as fd:
                    return sorted([entry.name for entry in self.listed(fd, folder) if fits(entry.name)])
            except PathMissing:
                return []
            except (FileRefused, OSError) as error:
                self.refuse_at(trail, folder, error)
                return []

    def take(self, kind: FileKind, path: str) -> bool:
        """Keep what is there; a refused file was there, but in a refused folder nothing was seen."""
        if path in self.files:
            return True
        if not path.isprintable():
            self.refuse(path, build_unprintable_error(path))
            return True
        with PathTrail(self.root) as trail:
            try:
                place = trail.go(path)
            except PathMissing:
                return False
            except FileRefused as why:
                self.count_file(path)
                return self.refuse_at(trail, path, why)
            self.keep(kind, path, place, place.path if trail.hops else "")
        return True

    def refuse_at(self, trail: PathTrail, path: str, error: FileRefused | OSError) -> bool:
        """Name the link or folder where the way ended; true if that was the path's own end."""
        if isinstance(error, SearchStopped):
            raise error
        names = path.split("/")
        self.refuse(
            "/".join(names[: trail.used]), convert_os_error(error) if isinstance(error, OSError) else error
        )
        return trail.used == len(names)

    def keep(self, kind: FileKind, path: str, place: ResolvedPath, target: str = "") -> None:
        """Read the file, unless its stamp is known; a bad one leaves a reason and harms no other."""
        self.count_file(path)
        try:
            stamp, content = self.read_or_recall(path, place)
        except FileRefused as why:
            self.refuse(path, why)
        else:
            self.bytes += stamp.size
            self.files[path] = DiscoveredFile(path, kind, stamp, content, escape_path(target))
        if self.notice:
            self.notice(self.seen, self.read, len(self.refusals))

    def read_or_recall(self, path: str, place: ResolvedPath) -> tuple[FileStamp, bytes | None]:
        status = place.status
        self.root.check(status, self.caps.file_bytes)
        # Known ones count too, so that what is found does not depend on what was known.
        if self.bytes + status.st_size > self.caps.total_bytes:
            raise FileRefused("total", f"All files together have more than {self.caps.total_bytes:,} bytes.")
        known = self.known.get(path)
        if known and known[:3] == (status.st_size, status.st_mtime_ns, status.st_ino):
            return known, None
        self.read += 1
        return self.root.read(place.folder, place.name, self.caps.file_bytes)

    # --- from a working directory up ---------------------------------------------------------------

    def upward(self, working_directory: str, harness: Harness) -> None:
        search_patterns(harness, self.folders_of(working_directory), self.find)

    def folders_of(self, working_directory: str) -> SearchFolders:
        """The real folders on the way; a working directory that is missing still has parents."""
        asked = self.inside(working_directory)
        with PathTrail(self.root) as trail:
            try:
                with trail.folder(asked, must_be=True):
                    real = trail.real
            except FileRefused as why:
                self.refuse(asked, why)
                return SearchFolders(get_search_folders("/".join(trail.names), self.caps.depth).each, None)
        if not real.isprintable():
            raise SearchStopped("name", build_unprintable_error(real).reason)
        found = get_search_folders(real, self.caps.depth)
        if found.project is None:
            self.refuse(real, build_depth_error(self.caps.depth))
        return found

    def inside(self, working_directory: str) -> str:
        """The path from the root; written wrongly it ends the search, for nobody can know what was meant."""
        if not working_directory.isprintable():
            raise SearchStopped("name", build_unprintable_error(working_directory).reason)
        if ".." in working_directory.split("/"):
            raise SearchStopped("path", "A working directory is written without .. in it.")
        if not working_directory.startswith("/"):
            return working_directory
        if not f"{working_directory}/".startswith(f"{self.root.path}/"):
            raise SearchStopped("outside", "The working directory lies outside the source.")
        return working_directory[len(self.root.path) :].strip("/")


def build_unprintable_error(path: str) -> FileRefused:
    return FileRefused("name", f"The name holds characters that cannot be shown: {escape_path(path)}")


def build_depth_error(depth: int) -> FileRefused:
    return FileRefused("depth", f"It lies more than {depth} folders below the source's root.")

"""One search through one source: what it may still look at, what it found and what it refused."""

import os
import re
from collections.abc import Callable, Mapping
from itertools import islice

from skills.discovery.filesystem import Absent, Place, Refused, Root, Stamp, Trail, refused
from skills.discovery.harnesses import Caps, Harness, Kind
from skills.discovery.lookup import Folders, folders, joined, name_shape, search, split
from skills.discovery.results import Found, FoundFile, Refusal, shown

Clock = Callable[[], float]
# Told after each file: how many were seen, read and refused so far.
Notice = Callable[[int, int, int], object]
WHOLE = "."


class Stopped(Refused):
    """A cap of the whole search was reached; what was found so far stays."""


class Search:
    """Looks at single paths below a root, and counts."""

    def __init__(
        self, root: Root, caps: Caps, known: Mapping[str, Stamp], clock: Clock, notice: Notice | None
    ) -> None:
        self.root, self.caps, self.known, self.clock, self.notice = root, caps, known, clock, notice
        self.deadline = clock() + caps.seconds
        self.files: dict[str, FoundFile] = {}
        self.refusals: dict[str, Refusal] = {}
        self.seen = self.read = self.bytes = self.entries = 0

    def result(self, *, is_complete: bool) -> Found:
        found = self.files.values()
        return Found(
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
            raise Stopped(
                "time", f"Looking took more than {self.caps.seconds:g} seconds; the rest was left out."
            )

    def count_file(self, path: str) -> None:
        self.keep_time()
        if self.seen == self.caps.files:
            most = f"There are more than {self.caps.files:,} files to read"
            raise Stopped("files", f"{most}; {shown(path)} and all that follow were left out.")
        self.seen += 1

    def listed(self, fd: int, path: str) -> list[os.DirEntry[str]]:
        """A folder that holds too many names counts for nothing: half of it would be a random half."""
        room = self.caps.entries - self.entries
        with os.scandir(fd) as entries:
            listed = list(islice(entries, room + 1))
        self.entries += len(listed)
        if len(listed) > room:
            most = f"There are more than {self.caps.entries:,} names to look at"
            raise Stopped(
                "entries", f"{most}; {shown(path) or 'the root'} and all that follow were left out."
            )
        return listed

    def refuse(self, path: str, why: Refused) -> None:
        if len(self.refusals) >= self.caps.files:
            raise Stopped("files", f"More than {self.caps.files:,} refusals; the rest was left out.")
        self.refusals.setdefault(path, Refusal(shown(path) or WHOLE, why.rule, why.reason))

    def stop(self, why: Refused) -> None:
        self.refusals[WHOLE] = Refusal(WHOLE, why.rule, why.reason)

    # --- single paths ------------------------------------------------------------------------------

    def find(self, kind: Kind, pattern: str) -> bool:
        """Whether anything is there; all that is gets looked at."""
        self.keep_time()
        if "*" not in pattern:
            return self.take(kind, pattern)
        above, star, below = split(pattern)
        hits = [self.take(kind, joined(above, name, below)) for name in self.names(above, star)]
        return any(hits)

    def names(self, folder: str, star: str) -> list[str]:
        fits = re.compile(name_shape(star)).fullmatch
        with Trail(self.root) as trail:
            try:
                with trail.folder(folder) as fd:
                    return sorted([entry.name for entry in self.listed(fd, folder) if fits(entry.name)])
            except Absent:
                return []
            except (Refused, OSError) as error:
                self.refuse_at(trail, folder, error)
                return []

    def take(self, kind: Kind, path: str) -> bool:
        """Keep what is there; a refused file was there, but in a refused folder nothing was seen."""
        if path in self.files:
            return True
        if not path.isprintable():
            self.refuse(path, unshowable(path))
            return True
        with Trail(self.root) as trail:
            try:
                place = trail.go(path)
            except Absent:
                return False
            except Refused as why:
                self.count_file(path)
                return self.refuse_at(trail, path, why)
            self.keep(kind, path, place, place.path if trail.hops else "")
        return True

    def refuse_at(self, trail: Trail, path: str, error: Refused | OSError) -> bool:
        """Name the link or folder where the way ended; true if that was the path's own end."""
        if isinstance(error, Stopped):
            raise error
        names = path.split("/")
        self.refuse("/".join(names[: trail.used]), refused(error) if isinstance(error, OSError) else error)
        return trail.used == len(names)

    def keep(self, kind: Kind, path: str, place: Place, target: str = "") -> None:
        """Read the file, unless its stamp is known; a bad one leaves a reason and harms no other."""
        self.count_file(path)
        try:
            stamp, content = self.read_or_recall(path, place)
        except Refused as why:
            self.refuse(path, why)
        else:
            self.bytes += stamp.size
            self.files[path] = FoundFile(path, kind, stamp, content, shown(target))
        if self.notice:
            self.notice(self.seen, self.read, len(self.refusals))

    def read_or_recall(self, path: str, place: Place) -> tuple[Stamp, bytes | None]:
        status = place.status
        self.root.check(status, self.caps.file_bytes)
        # Known ones count too, so that what is found does not depend on what was known.
        if self.bytes + status.st_size > self.caps.total_bytes:
            raise Refused("total", f"All files together have more than {self.caps.total_bytes:,} bytes.")
        known = self.known.get(path)
        if known and known[:3] == (status.st_size, status.st_mtime_ns, status.st_ino):
            return known, None
        self.read += 1
        return self.root.read(place.folder, place.name, self.caps.file_bytes)

    # --- from a working directory up ---------------------------------------------------------------

    def upward(self, working_directory: str, harness: Harness) -> None:
        search(harness, self.folders_of(working_directory), self.find)

    def folders_of(self, working_directory: str) -> Folders:
        """The real folders on the way; a working directory that is missing still has parents."""
        asked = self.inside(working_directory)
        with Trail(self.root) as trail:
            try:
                with trail.folder(asked, must_be=True):
                    real = trail.real
            except Refused as why:
                self.refuse(asked, why)
                return Folders(folders("/".join(trail.names), self.caps.depth).each, None)
        if not real.isprintable():
            raise Stopped("name", unshowable(real).reason)
        found = folders(real, self.caps.depth)
        if found.project is None:
            self.refuse(real, too_deep(self.caps.depth))
        return found

    def inside(self, working_directory: str) -> str:
        """The path from the root; written wrongly it ends the search, for nobody can know what was meant."""
        if not working_directory.isprintable():
            raise Stopped("name", unshowable(working_directory).reason)
        if ".." in working_directory.split("/"):
            raise Stopped("path", "A working directory is written without .. in it.")
        if not working_directory.startswith("/"):
            return working_directory
        if not f"{working_directory}/".startswith(f"{self.root.path}/"):
            raise Stopped("outside", "The working directory lies outside the source.")
        return working_directory[len(self.root.path) :].strip("/")


def unshowable(path: str) -> Refused:
    return Refused("name", f"The name holds characters that cannot be shown: {shown(path)}")


def too_deep(depth: int) -> Refused:
    return Refused("depth", f"It lies more than {depth} folders below the source's root.")

"""Open files below one folder only: path components are opened one by one with `dir_fd`.

Symbolic links are resolved by hand and followed only if they end inside the folder.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from types import TracebackType
from typing import NamedTuple, Self

from core.text.sizes import format_size

# Do not follow links, do not block on a pipe, do not acquire a controlling terminal.
SAFE_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
FOLDER_OPEN_FLAGS = SAFE_OPEN_FLAGS | os.O_DIRECTORY
MAX_LINK_HOPS = 40
# PathTrail keeps one folder open per level, and the number of open file descriptors is limited.
MAX_FOLDER_DEPTH = 64
FILE_TYPE_REFUSALS = {
    stat.S_IFDIR: ("folder", "This is a folder, but a file is expected."),
    stat.S_IFIFO: ("pipe", "This is a named pipe, not a file."),
    stat.S_IFCHR: ("device", "This is a device, not a file."),
    stat.S_IFBLK: ("device", "This is a device, not a file."),
    stat.S_IFSOCK: ("socket", "This is a socket, not a file."),
}
REPLACED_ERRNOS = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)


class FileRefused(Exception):
    """A file or folder exists but is not read. `rule` is a stable code, `reason` a message for users."""

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(reason)
        self.rule, self.reason = rule, reason


class PathMissing(Exception):
    """The path does not exist. Callers treat this as an optional file that is absent, not as an error."""


class FileStamp(NamedTuple):
    """Size, times and inode of a file, and the SHA-256 of its content.

    All but the digest detect a changed file without reading it. A program can set the modification time, but
    not the time of the last status change (ctime).
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    digest: str

    def matches(self, status: os.stat_result) -> bool:
        """Return whether a file with this status has the content of the stamp."""
        return self[:4] == (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


class ResolvedPath(NamedTuple):
    """A file after all links are resolved: descriptor of its open folder, name, status, and path."""

    folder: int
    name: str
    status: os.stat_result
    path: str


def convert_os_error(error: OSError) -> FileRefused:
    """Convert an operating system error to a refusal."""
    if error.errno in (errno.ENOENT, errno.ESTALE):
        return FileRefused("vanished", "The file disappeared while it was being opened.")
    if error.errno in REPLACED_ERRNOS:
        return FileRefused("replaced", "The file was replaced while it was being opened.")
    if error.errno in (errno.EACCES, errno.EPERM):
        return FileRefused("unreadable", "The worker does not have permission to read it.")
    return FileRefused("unreadable", f"The file cannot be read: {os.strerror(error.errno or 0)}.")


class SafeRoot:
    """The folder that a search must not leave.

    It is the folder granted by operators, or a folder below it whose path contains no links.
    """

    def __init__(
        self, granted: str | os.PathLike[str], folder: str = "", *, allow_hard_links: bool = False
    ) -> None:
        self.allow_hard_links = allow_hard_links
        names = [name for name in folder.split("/") if name]
        if {".", ".."} & set(names) or not folder.isprintable():
            raise FileRefused(
                "path", "The path of a source must not contain ., .. or unprintable characters."
            )
        self.path = os.path.join(os.path.realpath(granted), *names)
        # The granted path itself may contain links, because operators control it. The path below it may not.
        self.fd = os.open(granted, os.O_RDONLY | os.O_DIRECTORY)
        self.device = os.fstat(self.fd).st_dev
        try:
            for name in names:
                child_fd = self.enter(self.fd, name)
                os.close(self.fd)
                self.fd = child_fd
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        os.close(self.fd)

    def enter(self, folder: int, name: str) -> int:
        """Open a subfolder. Links and mount points are refused."""
        try:
            fd = os.open(name, FOLDER_OPEN_FLAGS, dir_fd=folder)
        except OSError as error:
            raise convert_os_error(error) from error
        if os.fstat(fd).st_dev != self.device:
            os.close(fd)
            raise FileRefused("mount", "It is on a different file system than the source.")
        return fd

    def check(self, status: os.stat_result, limit: int) -> None:
        """Refuse everything but regular files of this file system up to the size limit.

        A file with several hard links may have another name outside of the root, which nothing shows.
        """
        if not stat.S_ISREG(status.st_mode):
            file_type = stat.S_IFMT(status.st_mode)
            raise FileRefused(*FILE_TYPE_REFUSALS.get(file_type, ("kind", "This is not a regular file.")))
        if status.st_dev != self.device:
            raise FileRefused("mount", "It is on a different file system than the source.")
        if status.st_nlink > 1 and not self.allow_hard_links:
            raise FileRefused("hard-link", build_hard_link_reason(status.st_nlink))
        if status.st_size > limit:
            raise FileRefused("size", f"The file is larger than {format_size(limit)}.")

    def read_file(self, folder: int, name: str, limit: int) -> tuple[FileStamp, bytes]:
        """Open a file, check it by its descriptor, and read it.

        Checking the path instead would allow the file to be replaced between the check and the opening.
        """
        try:
            fd = os.open(name, SAFE_OPEN_FLAGS, dir_fd=folder)
        except OSError as error:
            raise convert_os_error(error) from error
        try:
            before = os.fstat(fd)
            self.check(before, limit)
            content = read_file_content(fd, before.st_size)
            after = os.fstat(fd)
        except OSError as error:
            raise convert_os_error(error) from error
        finally:
            os.close(fd)
        size, mtime = len(content), before.st_mtime_ns
        if (before.st_size, after.st_size, after.st_mtime_ns) != (size, size, mtime):
            raise FileRefused(
                "changing", ("The file changed while it was being read. The next refresh tries again.")
            )
        # The ctime is from before the read: if it changed since, the next refresh reads the file again.
        digest = sha256(content).hexdigest()
        return FileStamp(size, mtime, before.st_ctime_ns, before.st_ino, digest), content


def build_hard_link_reason(count: int) -> str:
    return (
        f"The file has {count:,} hard links, so it may also exist outside the source. To read it, "
        "allow hard links in the source's settings."
    )


def read_file_content(fd: int, size: int) -> bytes:
    """Read at most the size that the file had when it was opened, in case it grows."""
    content = os.read(fd, size)
    while len(content) < size and (more := os.read(fd, size - len(content))):
        content += more
    return content


class PathTrail:
    """Resolves a path below the root, one component after the other.

    All folders on the way stay open, so that ".." in the target of a link returns to the real parent.
    """

    def __init__(self, root: SafeRoot) -> None:
        self.root = root
        self.folders = [root.fd]
        self.names: list[str] = []
        self.link_hops = 0
        # How many names of the requested path were processed. Names from the target of a link do not count.
        self.used_names = 0
        # The resolved path of the last opened folder.
        self.real_path = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.return_to_root()

    def return_to_root(self) -> None:
        while self.names:
            self.go_up()

    def go_up(self) -> None:
        if not self.names:
            raise FileRefused("link-out", "The link points outside the source.")
        os.close(self.folders.pop())
        self.names.pop()

    def resolve(self, path: str) -> ResolvedPath:
        """Resolve the path. Its last component is not opened."""
        # A stack: the next name is the last item. The flag marks names from the target of a link.
        pending_names = [(name, False) for name in reversed(path.split("/"))]
        while pending_names:
            name, is_linked = pending_names.pop()
            self.used_names += not is_linked
            if name == "..":
                self.go_up()
            elif name not in {"", "."}:
                status = self.stat_name(name, is_linked)
                if stat.S_ISLNK(status.st_mode):
                    pending_names += [(part, True) for part in reversed(self.follow_link(name))]
                elif pending_names:
                    self.enter(name, status, pending_names[-1][1])
                else:
                    return ResolvedPath(self.folders[-1], name, status, "/".join([*self.names, name]))
        folder_fd = self.folders[-1]
        return ResolvedPath(folder_fd, ".", os.fstat(folder_fd), "/".join(self.names))

    @contextmanager
    def open_folder(self, path: str, *, is_required: bool = False) -> Iterator[int]:
        """Open the folder at this path.

        If there is no folder at this path, raise PathMissing, or FileRefused if the folder is required.
        """
        resolved = self.resolve_folder(path, is_required)
        if not stat.S_ISDIR(resolved.status.st_mode):
            raise FileRefused("not-folder", "This is not a folder.") if is_required else PathMissing
        fd = self.root.enter(resolved.folder, resolved.name)
        self.real_path = resolved.path
        try:
            yield fd
        finally:
            os.close(fd)

    def resolve_folder(self, path: str, is_required: bool) -> ResolvedPath:
        try:
            return self.resolve(path)
        except PathMissing as error:
            if is_required:
                raise FileRefused("missing", "Folder not found.") from error
            raise

    def stat_name(self, name: str, is_linked: bool) -> os.stat_result:
        try:
            return os.stat(name, dir_fd=self.folders[-1], follow_symlinks=False)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENAMETOOLONG):
                raise build_missing_error(is_linked) from error
            raise convert_os_error(error) from error

    def enter(self, name: str, status: os.stat_result, is_linked: bool) -> None:
        """Enter a folder. `is_linked` says whether the name after it comes from the target of a link."""
        if not stat.S_ISDIR(status.st_mode):
            raise build_missing_error(is_linked)
        if len(self.names) == MAX_FOLDER_DEPTH:
            raise FileRefused("depth", f"It is more than {MAX_FOLDER_DEPTH} folders deep.")
        self.folders.append(self.root.enter(self.folders[-1], name))
        self.names.append(name)

    def follow_link(self, name: str) -> list[str]:
        """Return the names in the target of a link. An absolute target must be below the root."""
        self.link_hops += 1
        if self.link_hops > MAX_LINK_HOPS:
            raise FileRefused(
                "link-loop",
                (f"The link passes through more than {MAX_LINK_HOPS} other links, or is circular."),
            )
        try:
            target = os.readlink(name, dir_fd=self.folders[-1])
        except OSError as error:
            raise FileRefused("replaced", "The file was replaced while it was being opened.") from error
        if not target.startswith("/"):
            return target.split("/")
        if f"{target}/".startswith(f"{self.root.path}/"):
            self.return_to_root()
            return target[len(self.root.path) :].split("/")
        raise FileRefused("link-out", "The link points outside the source.")


def build_missing_error(is_linked: bool) -> FileRefused | PathMissing:
    return (
        FileRefused("link-dangling", "The link is broken: its target does not exist.")
        if is_linked
        else PathMissing()
    )

"""Mutation tests for the checks of discovery: each check is disabled, and its case must then fail."""

import os
import signal
import stat
from contextlib import contextmanager
from dataclasses import replace

import pytest

from skills.discovery import filesystem, lookup, search, tree_rules
from skills.discovery.filesystem import FileStamp, PathMissing, PathTrail, ResolvedPath, SafeRoot
from skills.discovery.search import FileSearch
from skills.discovery.tree_search import TreeSearch
from tests.skills.discovery.discovery_stage import findings
from tests.skills.discovery.test_discovery import CASES, stage

__all__ = ["stage"]
pytestmark = [pytest.mark.planted, pytest.mark.promise("R8"), pytest.mark.slow]
BY_NAME = {case.name: case for case in CASES}


def without(name: str):
    """Remove one flag from all calls of open."""

    def plant(patch) -> None:
        for flags in ("SAFE_OPEN_FLAGS", "FOLDER_OPEN_FLAGS"):
            patch.setattr(filesystem, flags, getattr(filesystem, flags) & ~getattr(os, name))

    return plant


def any_kind(patch) -> None:
    """Disable the check of the file type, but not that of the size."""
    real = SafeRoot.check

    def check(self, status, limit):
        if stat.S_ISREG(status.st_mode):
            real(self, status, limit)

    patch.setattr(SafeRoot, "check", check)


def unseen_descriptor(patch) -> None:
    """Do not check the open descriptor again after the check by name."""
    real = SafeRoot.read_file

    def read_file(self, folder, name, limit):
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(SafeRoot, "check", lambda *_: None)
            return real(self, folder, name, limit)

    patch.setattr(SafeRoot, "read_file", read_file)


def any_target(patch) -> None:
    """Let the operating system follow links."""

    def resolve(self, path):
        real = os.path.realpath(os.path.join(self.root.path, path))
        if not os.path.exists(real):
            raise PathMissing
        folder = os.open(os.path.dirname(real), os.O_RDONLY)
        self.link_hops = 1
        return ResolvedPath(folder, os.path.basename(real), os.lstat(real), path)

    patch.setattr(PathTrail, "resolve", resolve)


def sloppy_prefix(patch) -> None:
    """Compare paths by prefix, so that /srv/inside-evil counts as below /srv/inside."""
    real = PathTrail.follow_link

    def follow_link(self, name):
        target = os.readlink(name, dir_fd=self.folders[-1])
        if not target.startswith(self.root.path):
            return real(self, name)
        self.return_to_root()
        self.folders[0] = os.open("/", os.O_RDONLY)
        return target.split("/")

    patch.setattr(PathTrail, "follow_link", follow_link)


def back_past_the_root(patch) -> None:
    real = PathTrail.go_up

    def go_up(self):
        if self.names:
            real(self)
        else:
            self.folders[0] = os.open("..", os.O_RDONLY, dir_fd=self.folders[0])

    patch.setattr(PathTrail, "go_up", go_up)


def any_device(patch) -> None:
    for name in ("enter", "check"):
        patch.setattr(SafeRoot, name, on_any_device(getattr(SafeRoot, name)))


def on_any_device(real):
    def work(self, first, second):
        device, self.device = self.device, Anything()
        try:
            return real(self, first, second)
        finally:
            self.device = device

    return work


class Anything:
    """Equal to everything."""

    def __eq__(self, other):
        return True

    __hash__ = None  # type: ignore[assignment]


def trusting_read(patch) -> None:
    """Do not compare size and time after reading."""

    def read_file(self, folder, name, limit):
        fd = os.open(name, filesystem.SAFE_OPEN_FLAGS, dir_fd=folder)
        status = os.fstat(fd)
        self.check(status, limit)
        content = filesystem.read_file_content(fd, status.st_size)
        os.close(fd)
        return FileStamp(len(content), status.st_mtime_ns, 0, status.st_ino, ""), content

    patch.setattr(SafeRoot, "read_file", read_file)


def no_hops(patch) -> None:
    patch.setattr(filesystem, "MAX_LINK_HOPS", 10**4)


def no_steps(patch) -> None:
    patch.setattr(filesystem, "MAX_FOLDER_DEPTH", 10**4)


def no_total(patch) -> None:
    patch.setattr(
        FileSearch, "total_bytes", property(lambda self: 0, lambda self, value: None), raising=False
    )


def no_size(patch) -> None:
    real = SafeRoot.check
    patch.setattr(SafeRoot, "check", lambda self, status, limit: real(self, status, 2**40))


def no_clock(patch) -> None:
    patch.setattr(FileSearch, "check_deadline", lambda self: None)


def no_count(patch) -> None:
    for search_class in (FileSearch, TreeSearch):
        patch.setattr(search_class, "count_file", lambda self, kind, path: None)


def no_entries(patch) -> None:
    patch.setattr(
        FileSearch, "entries", property(lambda self: -(10**6), lambda self, value: None), raising=False
    )


def no_folder_entries(patch) -> None:
    """List crowded folders too."""
    real = FileSearch.list_folder

    def list_folder(self, fd, path):
        self.caps = replace(self.caps, folder_entries=10**6)
        return real(self, fd, path)

    patch.setattr(FileSearch, "list_folder", list_folder)


def any_link_count(patch) -> None:
    real = SafeRoot.__init__
    patch.setattr(SafeRoot, "__init__", lambda self, *path, **more: real(self, *path, allow_hard_links=True))


def silent_links(patch) -> None:
    patch.setattr(TreeSearch, "report_skipped_link", lambda self, path: None)


def no_depth(patch) -> None:
    patch.setattr(
        TreeSearch, "open_child", lambda self, fd, name, child_node, depth: self.root.enter(fd, name)
    )


def raw_names(patch) -> None:
    patch.setattr(search, "escape_path", str)


def links_walked(patch) -> None:
    """Descend into linked folders."""
    real = TreeSearch.list_matching_entries

    def list_matching_entries(self, fd, path, node):
        listing = real(self, fd, path, node)
        links = [entry.name for entry in os.scandir(fd) if entry.is_symlink() and entry.is_dir()]
        return listing._replace(folders=[*listing.folders, *links])

    patch.setattr(TreeSearch, "list_matching_entries", list_matching_entries)
    without("O_NOFOLLOW")(patch)


def parents_wander(patch) -> None:
    """Use the parent of a missing working directory as the working directory."""
    patch.setattr(search, "SearchFolders", lambda each, project: lookup.SearchFolders(each, each[-1]))


def sees_hidden(patch) -> None:
    for module in (search, tree_rules):
        patch.setattr(module, "build_name_regex", lambda name: name.replace(".", r"\.").replace("*", ".*"))


FAULTS = [
    (no_folder_entries, "a crowded folder", "tree"),
    (no_folder_entries, "a crowded folder of skills", "up"),
    (any_link_count, "hard link", "up"),
    (any_link_count, "hard link of a skill to a file outside", "tree"),
    (silent_links, "other folder linked out", "tree"),
    (silent_links, "other folder linked to its parent", "tree"),
    (without("O_NOFOLLOW"), "becomes a link before it is opened", "up"),
    (without("O_NOFOLLOW"), "folder becomes a link before it is opened", "tree"),
    (without("O_NOFOLLOW"), "working directory becomes a link before it is opened", "up"),
    (without("O_NOFOLLOW"), "a tenant's folder that is a link out", "up"),
    (any_kind, "pipe", "up"),
    (any_kind, "folder named like a file", "tree"),
    # Only root can create the device; for other users the case is a link.
    *([(any_kind, "character device", "up")] if os.getuid() == 0 else []),
    (unseen_descriptor, "becomes a pipe before it is opened", "up"),
    (any_target, "link out, absolute", "up"),
    (any_target, "link out, relative", "tree"),
    (any_target, "link to the passwords", "tree"),
    (any_target, "working directory linked out", "up"),
    (sloppy_prefix, "link to a twin of the root", "up"),
    (back_past_the_root, "link out, relative", "up"),
    (back_past_the_root, "link chain that ends outside", "tree"),
    (any_device, "file of another file system", "tree"),
    (any_device, "folder of another file system", "tree"),
    (any_device, "working directory of another file system", "up"),
    (trusting_read, "grows while it is read", "up"),
    (trusting_read, "is rewritten while it is read", "tree"),
    (no_hops, "one link too many", "up"),
    (no_steps, "a link into the depths", "up"),
    (no_total, "all together too large", "up"),
    (no_size, "one byte too large", "tree"),
    (no_clock, "out of time", "tree"),
    (no_clock, "out of time, upwards", "up"),
    (no_count, "more skills than allowed", "tree"),
    (no_count, "more skills than allowed", "up"),
    (no_entries, "too many names", "tree"),
    (no_depth, "30 levels", "tree"),
    (no_depth, "line break in a folder's name", "tree"),
    (raw_names, "bytes that are no text", "tree"),
    (links_walked, "other folder linked out", "tree"),
    (parents_wander, "no persona of the parents", "up"),
    (sees_hidden, "hidden skill", "up"),
    (sees_hidden, "hidden rule", "tree"),
]


class Late(BaseException):
    """Raised on timeout. Not an OSError, which a search would convert to a refusal."""


@contextmanager
def at_most(seconds: int):
    """Limit the time of the block, which might wait forever."""

    def late(*_):
        raise Late

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    ("plant", "name", "way"), [pytest.param(*row, id=f"{at}: {row[1]}") for at, row in enumerate(FAULTS)]
)
def test_a_broken_guard_is_found(plant, name, way, stage, monkeypatch):
    plant(monkeypatch)
    assert findings(BY_NAME[name], way, stage)


def test_without_its_guard_a_pipe_would_be_waited_for(stage, monkeypatch):
    without("O_NONBLOCK")(monkeypatch)
    with at_most(1), pytest.raises(Late):
        findings(BY_NAME["becomes a pipe before it is opened"], "up", stage)

"""A search through every folder of a source, one listing each; folders stay open only on the way down."""

import os
import stat
from typing import NamedTuple

from skills.discovery.filesystem import FileRefused, ResolvedPath, convert_os_error
from skills.discovery.lookup import join_path
from skills.discovery.search import FileSearch, build_depth_error, build_unprintable_error
from skills.discovery.tree_rules import RuleNode, TreeRules


class FolderListing(NamedTuple):
    """The names in one folder that matter; most files do not."""

    files: list[str]
    folders: list[str]
    links: list[str]


class TreeSearch(FileSearch):
    """Goes down; links are followed only where a rule names them, so no loop can catch it."""

    rules: TreeRules

    def whole(self, rules: TreeRules) -> None:
        self.rules = rules
        self.visit(self.root.fd, "", rules.top, 0)

    def visit(self, fd: int, path: str, node: RuleNode, depth: int) -> None:
        """Path is "" for the root, and ends in a slash for the others."""
        self.keep_time()
        try:
            listing = self.listing(fd, path, node)
        except OSError as error:
            self.refuse(path.rstrip("/"), convert_os_error(error))
            return
        for name in sorted(listing.files):
            self.file(fd, path + name, name, node)
        for name in sorted(listing.links):
            self.beyond(path + name, name, node)
        for name in sorted(listing.folders):
            self.descend(fd, path + name, name, node, depth)

    def listing(self, fd: int, path: str, node: RuleNode) -> FolderListing:
        """The inner loop: ten thousand files pass here, so the cheapest questions come first."""
        files, folders, links = found = FolderListing([], [], [])
        wanted, has_shapes = node.files, bool(node.file_shapes)
        for entry in self.listed(fd, path):
            name = entry.name
            if name in wanted or (has_shapes and node.kind_of(name)):
                files.append(name)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(name)
            elif entry.is_symlink() and node.leads_on(name):
                links.append(name)
        return found

    def file(self, fd: int, path: str, name: str, node: RuleNode) -> None:
        kind = node.files.get(name) or node.kind_of(name)
        if kind is None or not path.isprintable():
            return self.refuse(path, build_unprintable_error(path))
        try:
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError as error:
            self.count_file(path)
            return self.refuse(path, convert_os_error(error))
        if stat.S_ISLNK(status.st_mode):
            self.take(kind, path)
        else:
            self.keep(kind, path, ResolvedPath(fd, name, status, path))
        return None

    def descend(self, fd: int, path: str, name: str, node: RuleNode, depth: int) -> None:
        below = node.below(name)
        if name in self.rules.skipped and not below.begun:
            return
        try:
            child = self.child(fd, name, below, depth)
        except FileRefused as why:
            self.refuse(path, why)
            return
        if child is None:
            self.beyond(path, name, node)
            return
        try:
            self.visit(child, f"{path}/", below, depth + 1)
        finally:
            os.close(child)

    def child(self, fd: int, name: str, below: RuleNode, depth: int) -> int | None:
        """The folder, open; None where it is too deep for a working directory but holds files of one."""
        if not name.isprintable():
            raise build_unprintable_error(name)
        if depth < self.caps.depth:
            return self.root.enter(fd, name)
        if below.begun:
            return None
        raise build_depth_error(self.caps.depth)

    def beyond(self, path: str, name: str, node: RuleNode) -> None:
        """Ask for what the rules name below a link, or below the depth, and look at nothing else there."""
        for kind, rest in node.remainders(name):
            self.find(kind, join_path(path, *rest))

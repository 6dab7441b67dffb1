"""Depth-first search through every folder of a source, with one directory listing per folder."""

import os
import stat
from collections import Counter
from typing import NamedTuple

from skills.discovery.file_limits import FileSelection, get_limited_folder, select_files
from skills.discovery.filesystem import FileRefused, PathMissing, PathTrail, ResolvedPath, convert_os_error
from skills.discovery.harnesses import FileKind
from skills.discovery.lookup import join_path
from skills.discovery.search import (
    MAX_REPORTED_LINKS,
    TIME_RULE,
    FileSearch,
    FolderCrowded,
    SearchStopped,
    build_depth_error,
    build_unprintable_error,
)
from skills.discovery.tree_rules import RuleNode, TreeRules


class FolderListing(NamedTuple):
    """The names in one folder that the search must visit, and the links that it does not follow."""

    files: list[str]
    folders: list[str]
    links: list[str]
    skipped_links: list[str]


class TooManyFiles(Exception):
    """One folder or the source has more files than are read."""


class TreeSearch(FileSearch):
    """Searches all folders.

    A symbolic link is followed only if a rule names it, so a link loop cannot make the search endless. Other
    links are reported, except links to files, which no rule names.
    """

    rules: TreeRules
    # The files to read. None in the first attempt, which ends as soon as there are too many.
    selection: FileSelection | None = None

    def search_tree(self, rules: TreeRules) -> None:
        """Search the source. If there are too many files, list them all, select some, and read these."""
        self.rules, self.folder_counts = rules, Counter[str]()
        try:
            self.visit(self.root.fd, "", rules.root_node, 0)
        except TooManyFiles:
            self.search_selection()

    def search_selection(self) -> None:
        found = FileListing(self.root, self.caps, {}, self.clock, None).list_files(self.rules, self.deadline)
        self.selection = selection = select_files(found, self.known_stamps, self.caps)
        self.read_files = self.files
        self.reset()
        self.visit(self.root.fd, "", self.rules.root_node, 0)
        self.skipped = selection.skipped
        self.seen_count += len(self.skipped)
        for folder, error in selection.folder_errors.items():
            self.add_refusal(folder, error)
        if selection.total_error:
            raise SearchStopped(selection.total_error.rule, selection.total_error.reason)

    def is_selected(self, path: str) -> bool:
        return self.selection is None or path in self.selection.chosen

    def count_file(self, kind: FileKind, path: str) -> None:
        self.check_deadline()
        folder = get_limited_folder(kind, path)
        self.folder_counts[folder] += 1
        is_over = self.folder_counts[folder] > self.caps.folder_files or self.seen_count == self.caps.files
        if self.selection is None and is_over:
            raise TooManyFiles
        self.seen_count += 1

    def visit(self, fd: int, path: str, node: RuleNode, depth: int) -> None:
        """Search a folder. `path` is "" for the root and ends in a slash otherwise."""
        self.check_deadline()
        try:
            listing = self.list_matching_entries(fd, path, node)
        except FolderCrowded as crowded:
            self.add_cut_folder(path.rstrip("/"), crowded)
            listing = self.list_named_entries(fd, node)
        except OSError as error:
            if not path:
                # Stop, because a complete search without any files would report every known file as missing.
                raise SearchStopped("source", f"The source cannot be read: {error.strerror}.") from error
            self.add_refusal(path.rstrip("/"), convert_os_error(error))
            return
        for name in sorted(listing.files):
            self.add_named_file(fd, path + name, name, node)
        for name in sorted(listing.links):
            self.search_below(path + name, name, node)
        for name in sorted(listing.skipped_links):
            self.report_skipped_link(path + name)
        for name in sorted(listing.folders):
            self.descend(fd, path + name, name, node, depth)

    def list_matching_entries(self, fd: int, path: str, node: RuleNode) -> FolderListing:
        """List the files that a rule matches, all subfolders, and all links.

        This is the inner loop, so the cheapest checks come first.
        """
        files, folders, links, skipped_links = listing = FolderListing([], [], [], [])
        file_names, has_patterns = node.files, bool(node.file_patterns)
        entries = self.list_folder(fd, path)
        self.is_empty |= not path and not entries
        for entry in entries:
            name = entry.name
            if name in file_names or (has_patterns and node.match_kind(name)):
                files.append(name)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(name)
            elif entry.is_symlink():
                (links if node.can_lead_to_match(name) else skipped_links).append(name)
        return listing

    def list_named_entries(self, fd: int, node: RuleNode) -> FolderListing:
        """Look up the names that the rules contain without a star, for a folder that is too large to list."""
        files, folders, links, _ = listing = FolderListing([], [], [], [])
        for name in {*node.files, *node.folders}:
            try:
                mode = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode
            except OSError:
                continue
            if name in node.files:
                files.append(name)
            elif stat.S_ISDIR(mode):
                folders.append(name)
            elif stat.S_ISLNK(mode):
                links.append(name)
        return listing

    def report_skipped_link(self, path: str) -> None:
        """Add a note for a link that no rule names, unless it leads to a file inside the source."""
        self.check_deadline()
        if path.rpartition("/")[2] in self.rules.skipped_folders:
            return
        if len(self.notes) >= MAX_REPORTED_LINKS:
            self.skipped_links += 1
            return
        with PathTrail(self.root) as trail:
            try:
                resolved = trail.resolve(path)
            except PathMissing:
                return
            except FileRefused as error:
                self.add_link_note(path, error)
                return
        if stat.S_ISDIR(resolved.status.st_mode):
            self.add_link_note(path, build_linked_folder_error(path, resolved.path))

    def add_named_file(self, fd: int, path: str, name: str, node: RuleNode) -> None:
        kind = node.files.get(name) or node.match_kind(name)
        if kind is None or not path.isprintable():
            return self.add_refusal(path, build_unprintable_error(path))
        if not self.is_selected(path):
            return None
        try:
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError as error:
            self.count_file(kind, path)
            return self.add_refusal(path, convert_os_error(error))
        if stat.S_ISLNK(status.st_mode):
            self.add_path(kind, path)
        else:
            self.add_file(kind, path, ResolvedPath(fd, name, status, path))
        return None

    def descend(self, fd: int, path: str, name: str, node: RuleNode, depth: int) -> None:
        child_node = node.get_child(name)
        if name in self.rules.skipped_folders and not child_node.remaining_paths:
            return
        try:
            child_fd = self.open_child(fd, name, child_node, depth)
        except FileRefused as error:
            self.add_refusal(path, error)
            return
        if child_fd is None:
            self.search_below(path, name, node)
            return
        try:
            self.visit(child_fd, f"{path}/", child_node, depth + 1)
        finally:
            os.close(child_fd)

    def open_child(self, fd: int, name: str, child_node: RuleNode, depth: int) -> int | None:
        """Open a subfolder.

        At the depth limit, return None if a pattern that began in a parent folder can still match below
        the subfolder. Otherwise raise FileRefused.
        """
        if not name.isprintable():
            raise build_unprintable_error(name)
        if depth < self.caps.depth:
            return self.root.enter(fd, name)
        if child_node.remaining_paths:
            return None
        raise build_depth_error(self.caps.depth)

    def search_below(self, path: str, name: str, node: RuleNode) -> None:
        """Search below a link or below the depth limit.

        Only patterns that began to match in a parent folder are searched.
        """
        for kind, rest in node.list_remaining_paths(name):
            self.search_pattern(kind, join_path(path, *rest))


class FileListing(TreeSearch):
    """Lists the files that rules find, without reading them."""

    def list_files(self, rules: TreeRules, deadline: float) -> dict[str, FileKind]:
        self.found: dict[str, FileKind] = {}
        self.rules, self.deadline = rules, deadline
        try:
            self.visit(self.root.fd, "", rules.root_node, 0)
        except SearchStopped as error:
            # Ignore any other limit: the search that reads the selected files stops at the same place.
            if error.rule == TIME_RULE:
                raise
        return self.found

    def count_file(self, kind: FileKind, path: str) -> None:
        self.check_deadline()
        self.found[path] = kind

    def add_file(self, kind: FileKind, path: str, resolved: ResolvedPath, target: str = "") -> None:
        self.count_file(kind, path)

    def add_refusal(self, path: str, error: FileRefused) -> None:
        """Do nothing: the search for the selected files reports refusals."""

    def report_skipped_link(self, path: str) -> None:
        """Do nothing: the search for the selected files reports links."""


def build_linked_folder_error(path: str, target: str) -> FileRefused:
    if not target or f"{path}/".startswith(f"{target}/"):
        return FileRefused("link-loop", "The link points to a folder that contains it.")
    return FileRefused(
        "link-folder",
        "This is a link to another folder of the source. Only links that a rule names are followed.",
    )

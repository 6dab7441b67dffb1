"""Match the path of a pushed file against the discovery rules, with the same result as a file on disk."""

import re
import stat

from skills.discovery.filesystem import FILE_TYPE_REFUSALS, FileRefused
from skills.discovery.harnesses import FileKind
from skills.discovery.lookup import build_name_regex
from skills.discovery.search import build_depth_error
from skills.discovery.tree_rules import RuleNode, TreeRules


class FolderRefused(FileRefused):
    """A parent folder of the pushed file is refused, and therefore all files below that folder."""

    def __init__(self, folder: str, rule: str, reason: str) -> None:
        super().__init__(rule, reason)
        self.folder = folder


class PathMatcher:
    """Walks the rule tree along a path, as a search on disk would."""

    def __init__(self, rules: TreeRules, depth: int) -> None:
        self.rules, self.depth = rules, depth

    def match_kind(self, path: str) -> FileKind | None:
        """Return the kind of the first matching rule, or None."""
        names = path.split("/")
        node = self.rules.root_node
        for depth, folder in enumerate(names[:-1]):
            if get_file_kind(node, folder):
                raise build_folder_error(names[: depth + 1])
            child = node.get_child(folder)
            if folder in self.rules.skipped_folders and not child.remaining_paths:
                return None
            if depth >= self.depth:
                return self.match_deep_kind(child, names, depth + 1)
            node = child
        return get_file_kind(node, names[-1])

    def match_deep_kind(self, node: RuleNode, names: list[str], depth: int) -> FileKind | None:
        """Match a path below the depth limit.

        A folder this deep cannot be a working directory. A pattern that began to match in a folder above
        the limit, such as `.agents/skills/*/SKILL.md`, can still match here.
        """
        for kind, rest in node.remaining_paths:
            end = depth + len(rest)
            if is_path_match(rest, names[depth:end]):
                if end < len(names):
                    raise build_folder_error(names[:end])
                return kind
        if not node.remaining_paths and self.matches_ignoring_depth("/".join(names)):
            error = build_depth_error(self.depth)
            raise FolderRefused("/".join(names[:depth]), error.rule, error.reason)
        return None

    def matches_ignoring_depth(self, path: str) -> bool:
        """Return whether a rule would match without the depth limit."""
        try:
            return PathMatcher(self.rules, path.count("/")).match_kind(path) is not None
        except FolderRefused:
            return False


def build_folder_error(names: list[str]) -> FolderRefused:
    return FolderRefused("/".join(names), *FILE_TYPE_REFUSALS[stat.S_IFDIR])


def get_file_kind(node: RuleNode, name: str) -> FileKind | None:
    return node.files.get(name) or node.match_kind(name)


def is_path_match(patterns: tuple[str, ...], names: list[str]) -> bool:
    if len(patterns) != len(names):
        return False
    pairs = zip(patterns, names, strict=True)
    return all(re.fullmatch(build_name_regex(pattern), name) for pattern, name in pairs)

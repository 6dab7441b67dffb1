"""A trie of the path patterns of all rules: which names matter in which folder of a source.

Folders in which the same patterns apply share one cached node.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property

from skills.discovery.harnesses import FileKind, Harness
from skills.discovery.lookup import build_name_regex, list_anchored_patterns, list_relative_patterns

# The kind of file, and the components of its path pattern that are not matched yet.
RemainingPath = tuple[FileKind, tuple[str, ...]]


class RuleNode:
    """The patterns that apply in a folder.

    These are the rest of each pattern that began to match in a parent folder, and all relative patterns.
    """

    def __init__(self, rules: "TreeRules", remaining_paths: tuple[RemainingPath, ...]) -> None:
        self.rules = rules
        self.remaining_paths = remaining_paths
        # Partly matched patterns come first, because they are more specific.
        self.patterns = (*remaining_paths, *rules.relative_paths)
        self.files: dict[str, FileKind] = {}
        for kind, (name, *below) in reversed(self.patterns):
            if not below and "*" not in name:
                self.files[name] = kind
        self.file_patterns = [
            (re.compile(build_name_regex(name)), kind)
            for kind, (name, *below) in self.patterns
            if not below and "*" in name
        ]
        self.folders = {name for _, (name, *below) in self.patterns if below and name != "*"}
        self.has_any_folder = any(below and name == "*" for _, (name, *below) in self.patterns)
        self.children: dict[str, RuleNode] = {}

    def match_kind(self, name: str) -> FileKind | None:
        """Return the kind of the first pattern with a star that matches. Patterns without are in `files`."""
        return next((kind for pattern, kind in self.file_patterns if pattern.fullmatch(name)), None)

    def can_lead_to_match(self, name: str) -> bool:
        return name in self.folders or (self.has_any_folder and not name.startswith("."))

    def get_child(self, name: str) -> "RuleNode":
        """Return the node of a subfolder. Most names match no pattern and share the default node."""
        if not self.can_lead_to_match(name):
            return self.rules.default_node
        key = name if name in self.folders else "*"
        if key not in self.children:
            self.children[key] = self.rules.get_node(self.list_remaining_paths(name))
        return self.children[key]

    def list_remaining_paths(self, name: str) -> tuple[RemainingPath, ...]:
        """List the patterns that apply below a subfolder of this name, without the matched component."""
        names = {name} if name.startswith(".") else {name, "*"}
        return tuple(
            [
                (kind, below)
                for kind, (first, *rest) in self.patterns
                if (below := tuple(rest)) and first in names
            ]
        )


class TreeRules:
    """The combined rules of several harnesses, and the cache of their nodes."""

    def __init__(self, harnesses: Sequence[Harness]) -> None:
        self.relative_paths = build_remaining_paths(
            pair for harness in harnesses for pair in list_relative_patterns(harness)
        )
        self.anchored_paths = build_remaining_paths(
            pair for harness in harnesses for pair in list_anchored_patterns(harness)
        )
        self.nodes: dict[tuple[RemainingPath, ...], RuleNode] = {}
        # A folder is skipped only if all harnesses skip it.
        skipped_sets = [set(harness.skip_folders) for harness in harnesses]
        self.skipped_folders: set[str] = set.intersection(*skipped_sets) if skipped_sets else set()

    @cached_property
    def default_node(self) -> RuleNode:
        return self.get_node(())

    @cached_property
    def root_node(self) -> RuleNode:
        return self.get_node(self.anchored_paths)

    def get_node(self, remaining_paths: tuple[RemainingPath, ...]) -> RuleNode:
        if remaining_paths not in self.nodes:
            self.nodes[remaining_paths] = RuleNode(self, remaining_paths)
        return self.nodes[remaining_paths]


def build_remaining_paths(pairs: Iterable[tuple[FileKind, str]]) -> tuple[RemainingPath, ...]:
    """Split each pattern into its components. Duplicates are removed; the order is kept."""
    return tuple(dict.fromkeys([(kind, tuple(path.split("/"))) for kind, path in pairs]))

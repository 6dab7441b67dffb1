"""Which names matter in which folder of a source, worked out once per kind of folder and then looked up."""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property

from skills.discovery.harnesses import FileKind, Harness
from skills.discovery.lookup import build_name_regex, list_anchored_patterns, list_relative_patterns

# A kind, and the names still to come below a folder.
RemainingPath = tuple[FileKind, tuple[str, ...]]


class RuleNode:
    """What may be found in a folder, given the names that led to it."""

    def __init__(self, rules: "TreeRules", begun: tuple[RemainingPath, ...]) -> None:
        self.rules = rules
        self.begun = begun
        # What was begun above comes first: it is the more exact.
        self.wanted = (*begun, *rules.anywhere)
        self.files: dict[str, FileKind] = {}
        for kind, (name, *below) in reversed(self.wanted):
            if not below and "*" not in name:
                self.files[name] = kind
        self.file_shapes = [
            (re.compile(build_name_regex(name)), kind)
            for kind, (name, *below) in self.wanted
            if not below and "*" in name
        ]
        self.folders = {name for _, (name, *below) in self.wanted if below and name != "*"}
        self.has_any_folder = any(below and name == "*" for _, (name, *below) in self.wanted)
        self.steps: dict[str, RuleNode] = {}

    def kind_of(self, name: str) -> FileKind | None:
        """For names with a star; plain ones are in `files`."""
        return next((kind for fits, kind in self.file_shapes if fits.fullmatch(name)), None)

    def leads_on(self, name: str) -> bool:
        return name in self.folders or (self.has_any_folder and not name.startswith("."))

    def below(self, name: str) -> "RuleNode":
        """The node of a folder in this one; most names begin nothing and share one."""
        if not self.leads_on(name):
            return self.rules.plain
        key = name if name in self.folders else "*"
        if key not in self.steps:
            self.steps[key] = self.rules.node(self.remainders(name))
        return self.steps[key]

    def remainders(self, name: str) -> tuple[RemainingPath, ...]:
        """What is still to come below a folder of this name."""
        names = {name} if name.startswith(".") else {name, "*"}
        return tuple(
            [
                (kind, below)
                for kind, (first, *rest) in self.wanted
                if (below := tuple(rest)) and first in names
            ]
        )


class TreeRules:
    """The rules of several harnesses over one source."""

    def __init__(self, harnesses: Sequence[Harness]) -> None:
        self.anywhere = build_remaining_paths(
            pair for harness in harnesses for pair in list_relative_patterns(harness)
        )
        self.anchored = build_remaining_paths(
            pair for harness in harnesses for pair in list_anchored_patterns(harness)
        )
        self.nodes: dict[tuple[RemainingPath, ...], RuleNode] = {}
        # A folder is passed over when no harness wants it looked into.
        skipped = [set(harness.skip_folders) for harness in harnesses]
        self.skipped: set[str] = set.intersection(*skipped) if skipped else set()

    @cached_property
    def plain(self) -> RuleNode:
        return self.node(())

    @cached_property
    def top(self) -> RuleNode:
        return self.node(self.anchored)

    def node(self, begun: tuple[RemainingPath, ...]) -> RuleNode:
        if begun not in self.nodes:
            self.nodes[begun] = RuleNode(self, begun)
        return self.nodes[begun]


def build_remaining_paths(pairs: Iterable[tuple[FileKind, str]]) -> tuple[RemainingPath, ...]:
    """Each once, in the order given."""
    return tuple(dict.fromkeys([(kind, tuple(path.split("/"))) for kind, path in pairs]))

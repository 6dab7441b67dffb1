"""What the rules make of a pushed path: the same as of a file that lies there on disk."""

import re
import stat

from skills.discovery.filesystem import KINDS, Refused
from skills.discovery.harnesses import Kind
from skills.discovery.lookup import name_shape
from skills.discovery.search import too_deep
from skills.discovery.tree_rules import Node, TreeRules


class Misplaced(Refused):
    """A folder on the way is at fault, and so all that lies in it."""

    def __init__(self, folder: str, rule: str, reason: str) -> None:
        super().__init__(rule, reason)
        self.folder = folder


class Naming:
    """Goes down a path as a search goes down a disk."""

    def __init__(self, rules: TreeRules, depth: int) -> None:
        self.rules, self.depth = rules, depth

    def kind_of(self, path: str) -> Kind | None:
        """As what a rule names it; None where none does."""
        names = path.split("/")
        node = self.rules.top
        for depth, folder in enumerate(names[:-1]):
            if named(node, folder):
                raise as_folder(names[: depth + 1])
            below = node.below(folder)
            if folder in self.rules.skipped and not below.begun:
                return None
            if depth >= self.depth:
                return self.kind_below(below, names, depth + 1)
            node = below
        return named(node, names[-1])

    def kind_below(self, node: Node, names: list[str], depth: int) -> Kind | None:
        """Too deep for a working directory, though it may hold files of one."""
        for kind, rest in node.begun:
            end = depth + len(rest)
            if fits(rest, names[depth:end]):
                if end < len(names):
                    raise as_folder(names[:end])
                return kind
        if not node.begun and self.would_name("/".join(names)):
            why = too_deep(self.depth)
            raise Misplaced("/".join(names[:depth]), why.rule, why.reason)
        return None

    def would_name(self, path: str) -> bool:
        """Whether a rule names it, were it not for the depth."""
        try:
            return Naming(self.rules, path.count("/")).kind_of(path) is not None
        except Misplaced:
            return False


def as_folder(names: list[str]) -> Misplaced:
    return Misplaced("/".join(names), *KINDS[stat.S_IFDIR])


def named(node: Node, name: str) -> Kind | None:
    return node.files.get(name) or node.kind_of(name)


def fits(wanted: tuple[str, ...], names: list[str]) -> bool:
    if len(wanted) != len(names):
        return False
    pairs = zip(wanted, names, strict=True)
    return all(re.fullmatch(name_shape(shape), name) for shape, name in pairs)

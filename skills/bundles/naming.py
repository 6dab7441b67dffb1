"""What the rules make of a pushed path: the same as of a file that lies there on disk."""

import re
import stat

from skills.confined import KINDS, Refused
from skills.discovery.lookups import name_shape
from skills.discovery.searching import too_deep
from skills.discovery.tree_rules import Node, TreeRules
from skills.harnesses import Kind


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
        *folders, name = path.split("/")
        node = self.rules.top
        for depth, folder in enumerate(folders):
            if named(node, folder):
                raise Misplaced("/".join(folders[: depth + 1]), *KINDS[stat.S_IFDIR])
            below = node.below(folder)
            if folder in self.rules.skipped and not below.begun:
                return None
            if depth >= self.depth:
                return self.beyond(path, below, depth + 1)
            node = below
        return named(node, name)

    def beyond(self, path: str, node: Node, depth: int) -> Kind | None:
        """Too deep for a working directory, though it may hold files of one."""
        names = path.split("/")
        if node.begun:
            return next((kind for kind, rest in node.begun if fits(rest, names[depth:])), None)
        if Naming(self.rules, len(names)).kind_of(path):
            why = too_deep(self.depth)
            raise Misplaced("/".join(names[:depth]), why.rule, why.reason)
        return None


def named(node: Node, name: str) -> Kind | None:
    return node.files.get(name) or node.kind_of(name)


def fits(wanted: tuple[str, ...], names: list[str]) -> bool:
    if len(wanted) != len(names):
        return False
    pairs = zip(wanted, names, strict=True)
    return all(re.fullmatch(name_shape(shape), name) for shape, name in pairs)

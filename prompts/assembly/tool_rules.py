"""Guidelines that follow from the tools an agent has: a new one is one row in a table."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

SHELLS = frozenset({"shell", "bash", "zsh", "cmd", "powershell"})
EXPLORERS = frozenset({"grep", "find", "ls"})
KNOWN = SHELLS | {"read_file", "edit_file", "write_file", "sub_agent", "tasks", "use_skill"}
NONE: frozenset[str] = frozenset()


class Needs(NamedTuple):
    """Which tools must be there: every one of these, at least one of those, none of the last."""

    every: AbstractSet[str] = NONE
    some: AbstractSet[str] = NONE
    none: AbstractSet[str] = NONE

    def met_by(self, names: AbstractSet[str]) -> bool:
        every, some, none = self
        return every <= names and (not some or not some.isdisjoint(names)) and none.isdisjoint(names)


class Rule(NamedTuple):
    """One row: what it needs, and the lines it gives."""

    needs: Needs
    words: tuple[str, ...]


OPAL_RULES = (
    Rule(
        Needs(every={"read_file"}, some=SHELLS),
        (
            "Use the `read_file` tool to read files. Do NOT use `cat`, `head`, `tail`, or `less` via shell.",
            "Use `read_file` with `offset` and `limit` to read specific line ranges.",
        ),
    ),
    Rule(
        Needs(every={"edit_file"}, some=SHELLS),
        (
            (
                "Use the `edit_file` tool for all file modifications. "
                "Do NOT use `sed`, `awk`, `perl -i`, or shell redirects (`>`, `>>`)."
            ),
        ),
    ),
    Rule(
        Needs(every={"write_file"}),
        ("Use the `write_file` tool to create new files. Do NOT use shell redirects or `tee`.",),
    ),
    Rule(
        Needs(some=SHELLS),
        (
            (
                "When summarizing your actions, output plain text directly in your response. "
                "Do NOT use `cat`, `echo`, or shell to display files you just wrote."
            ),
        ),
    ),
    Rule(
        Needs(some=SHELLS, none={"read_file"}),
        ("Use shell commands like `cat`, `grep`, `find`, and `ls` for file exploration.",),
    ),
    Rule(
        Needs(some=KNOWN),
        (
            (
                "Before starting each major step in a multi-step task, emit a short status tag: "
                "`<status>Analyzing test failures</status>`. Keep it under 6 words."
            ),
        ),
    ),
)

PI_RULES = (
    Rule(Needs(every={"bash"}, none=EXPLORERS), ("Use bash for file operations like ls, rg, find",)),
    Rule(
        Needs(every={"bash"}, some=EXPLORERS), ("Prefer grep/find/ls tools over bash for file exploration",)
    ),
    Rule(
        Needs(every={"read", "edit"}),
        ("Use read to examine files before editing. You must use this tool instead of cat or sed.",),
    ),
    Rule(Needs(every={"edit"}), ("Use edit for precise changes (old text must match exactly)",)),
    Rule(Needs(every={"write"}), ("Use write only for new files or complete rewrites",)),
    Rule(Needs(some={"edit", "write"}), ("When summarizing your actions, output plain text directly",)),
)

PI_STANDING = (
    Rule(Needs(), ("Be concise in your responses",)),
    Rule(Needs(), ("Show file paths clearly when working with files",)),
)

# Both spellings of the file tools, and the shell for reading only where neither is there.
SEARCH = next(rule for rule in OPAL_RULES if rule.needs.none)
DRAMATIS_RULES = (
    *(rule for rule in OPAL_RULES if rule is not SEARCH),
    Rule(Needs(some=SHELLS, none={"read_file", "read"}), SEARCH.words),
    *PI_RULES[2:5],
)


class Guidelines(NamedTuple):
    """A pipeline: the rules, then what the tools ask for themselves, then what always holds."""

    rules: tuple[Rule, ...]
    standing: tuple[Rule, ...] = ()

    def told(self, names: Iterable[str], own: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Every line once, in order, with the tool that asked for it; rules name no tool."""
        ordered = dict.fromkeys(names)
        known = frozenset(ordered)
        told = dict.fromkeys(matching(self.rules, known), "")
        for name in ordered:
            for line in own.get(name, ()):
                told.setdefault(line, name)
        for line in matching(self.standing, known):
            told.setdefault(line, "")
        return told

    def speak(self, names: AbstractSet[str]) -> bool:
        """Whether a rule has anything to say to these tools."""
        return any(rule.needs.met_by(names) for rule in (*self.standing, *self.rules))


def matching(rules: Iterable[Rule], names: AbstractSet[str]) -> list[str]:
    """The lines of the rules that these tools call for."""
    return [line for rule in rules if rule.needs.met_by(names) for line in rule.words]

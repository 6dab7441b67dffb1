"""Guidelines that follow from the tools an agent has: a new one is one row in a table."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

SHELL_TOOLS = frozenset({"shell", "bash", "zsh", "cmd", "powershell"})
SEARCH_TOOLS = frozenset({"grep", "find", "ls"})
KNOWN_TOOLS = SHELL_TOOLS | {"read_file", "edit_file", "write_file", "sub_agent", "tasks", "use_skill"}
NO_TOOLS: frozenset[str] = frozenset()


class ToolCondition(NamedTuple):
    """Which tools must be there: every one of these, at least one of those, none of the last."""

    every: AbstractSet[str] = NO_TOOLS
    some: AbstractSet[str] = NO_TOOLS
    none: AbstractSet[str] = NO_TOOLS

    def met_by(self, names: AbstractSet[str]) -> bool:
        every, some, none = self
        return every <= names and (not some or not some.isdisjoint(names)) and none.isdisjoint(names)


class ToolRule(NamedTuple):
    """One row: what it needs, and the lines it gives."""

    needs: ToolCondition
    words: tuple[str, ...]


OPAL_RULES = (
    ToolRule(
        ToolCondition(every={"read_file"}, some=SHELL_TOOLS),
        (
            "Use the `read_file` tool to read files. Do NOT use `cat`, `head`, `tail`, or `less` via shell.",
            "Use `read_file` with `offset` and `limit` to read specific line ranges.",
        ),
    ),
    ToolRule(
        ToolCondition(every={"edit_file"}, some=SHELL_TOOLS),
        (
            (
                "Use the `edit_file` tool for all file modifications. "
                "Do NOT use `sed`, `awk`, `perl -i`, or shell redirects (`>`, `>>`)."
            ),
        ),
    ),
    ToolRule(
        ToolCondition(every={"write_file"}),
        ("Use the `write_file` tool to create new files. Do NOT use shell redirects or `tee`.",),
    ),
    ToolRule(
        ToolCondition(some=SHELL_TOOLS),
        (
            (
                "When summarizing your actions, output plain text directly in your response. "
                "Do NOT use `cat`, `echo`, or shell to display files you just wrote."
            ),
        ),
    ),
    ToolRule(
        ToolCondition(some=SHELL_TOOLS, none={"read_file"}),
        ("Use shell commands like `cat`, `grep`, `find`, and `ls` for file exploration.",),
    ),
    ToolRule(
        ToolCondition(some=KNOWN_TOOLS),
        (
            (
                "Before starting each major step in a multi-step task, emit a short status tag: "
                "`<status>Analyzing test failures</status>`. Keep it under 6 words."
            ),
        ),
    ),
)

PI_RULES = (
    ToolRule(
        ToolCondition(every={"bash"}, none=SEARCH_TOOLS), ("Use bash for file operations like ls, rg, find",)
    ),
    ToolRule(
        ToolCondition(every={"bash"}, some=SEARCH_TOOLS),
        ("Prefer grep/find/ls tools over bash for file exploration",),
    ),
    ToolRule(
        ToolCondition(every={"read", "edit"}),
        ("Use read to examine files before editing. You must use this tool instead of cat or sed.",),
    ),
    ToolRule(ToolCondition(every={"edit"}), ("Use edit for precise changes (old text must match exactly)",)),
    ToolRule(ToolCondition(every={"write"}), ("Use write only for new files or complete rewrites",)),
    ToolRule(
        ToolCondition(some={"edit", "write"}), ("When summarizing your actions, output plain text directly",)
    ),
)

PI_GENERAL_RULES = (
    ToolRule(ToolCondition(), ("Be concise in your responses",)),
    ToolRule(ToolCondition(), ("Show file paths clearly when working with files",)),
)

# Both spellings of the file tools, and the shell for reading only where neither is there.
SHELL_SEARCH_RULE = next(rule for rule in OPAL_RULES if rule.needs.none)
DRAMATIS_RULES = (
    *(rule for rule in OPAL_RULES if rule is not SHELL_SEARCH_RULE),
    ToolRule(ToolCondition(some=SHELL_TOOLS, none={"read_file", "read"}), SHELL_SEARCH_RULE.words),
    *PI_RULES[2:5],
)


class ToolGuidelines(NamedTuple):
    """A pipeline: the rules, then what the tools ask for themselves, then what always holds."""

    rules: tuple[ToolRule, ...]
    standing: tuple[ToolRule, ...] = ()

    def told(self, names: Iterable[str], own: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Every line once, in order, with the tool that asked for it; rules name no tool."""
        ordered = dict.fromkeys(names)
        known = frozenset(ordered)
        told = dict.fromkeys(list_matching_lines(self.rules, known), "")
        for name in ordered:
            for line in own.get(name, ()):
                told.setdefault(line, name)
        for line in list_matching_lines(self.standing, known):
            told.setdefault(line, "")
        return told

    def speak(self, names: AbstractSet[str]) -> bool:
        """Whether a rule has anything to say to these tools."""
        return any(rule.needs.met_by(names) for rule in (*self.standing, *self.rules))


def list_matching_lines(rules: Iterable[ToolRule], names: AbstractSet[str]) -> list[str]:
    """The lines of the rules that these tools call for."""
    return [line for rule in rules if rule.needs.met_by(names) for line in rule.words]

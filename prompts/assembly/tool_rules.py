"""Rule tables: which guidelines apply to which tools. A new guideline is one row in a table."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

SHELL_TOOLS = frozenset({"shell", "bash", "zsh", "cmd", "powershell"})
SEARCH_TOOLS = frozenset({"grep", "find", "ls"})
KNOWN_TOOLS = SHELL_TOOLS | {"read_file", "edit_file", "write_file", "sub_agent", "tasks", "use_skill"}
NO_TOOLS: frozenset[str] = frozenset()


class ToolCondition(NamedTuple):
    """Which tools must be present: all of `every`, at least one of `some`, and none of `none`."""

    every: AbstractSet[str] = NO_TOOLS
    some: AbstractSet[str] = NO_TOOLS
    none: AbstractSet[str] = NO_TOOLS

    def is_met_by(self, names: AbstractSet[str]) -> bool:
        every, some, none = self
        return every <= names and (not some or not some.isdisjoint(names)) and none.isdisjoint(names)


class ToolRule(NamedTuple):
    """A condition and the lines that apply when it is met."""

    needs: ToolCondition
    lines: tuple[str, ...]


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

# The tool that reads files is called `read_file` in opal and `read` in pi; dramatis supports both names.
# The rule that recommends the shell for reading files therefore applies only if both tools are absent.
SHELL_SEARCH_RULE = next(rule for rule in OPAL_RULES if rule.needs.none)
DRAMATIS_RULES = (
    *(rule for rule in OPAL_RULES if rule is not SHELL_SEARCH_RULE),
    ToolRule(ToolCondition(some=SHELL_TOOLS, none={"read_file", "read"}), SHELL_SEARCH_RULE.lines),
    *PI_RULES[2:5],
)


class ToolGuidelines(NamedTuple):
    """The guidelines of a layout, in this order: rules, guidelines of the tools themselves, general rules."""

    rules: tuple[ToolRule, ...]
    general_rules: tuple[ToolRule, ...] = ()

    def select_lines(self, names: Iterable[str], own: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Map each line, in order, to the name of the tool it belongs to; empty for lines from rules."""
        ordered = dict.fromkeys(names)
        tool_names = frozenset(ordered)
        lines = dict.fromkeys(list_matching_lines(self.rules, tool_names), "")
        for name in ordered:
            for line in own.get(name, ()):
                lines.setdefault(line, name)
        for line in list_matching_lines(self.general_rules, tool_names):
            lines.setdefault(line, "")
        return lines

    def has_matching_rule(self, names: AbstractSet[str]) -> bool:
        """Tell whether any rule applies to these tools."""
        return any(rule.needs.is_met_by(names) for rule in (*self.general_rules, *self.rules))


def list_matching_lines(rules: Iterable[ToolRule], names: AbstractSet[str]) -> list[str]:
    """List the lines of the rules that apply to these tools."""
    return [line for rule in rules if rule.needs.is_met_by(names) for line in rule.lines]

"""Which guidance an agent's tools call for in its layout, and which of them do."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from prompts.assembly.layouts import dramatis, opal, pi
from prompts.assembly.texts.moltis import TOOL_RULES
from prompts.assembly.tool_rules import Guidelines, Rule

# Layouts that are not here say nothing about the use of single tools.
TABLES: dict[str, Guidelines] = {
    "dramatis": dramatis.GUIDELINES,
    "opal": opal.GUIDELINES,
    "pi": pi.GUIDELINES,
    "moltis": Guidelines(TOOL_RULES),
}


@dataclass(frozen=True)
class Guidance:
    """One line, and the tools that it stands there for; none where it always stands."""

    words: str
    tools: Sequence[str]
    # Whether the tool's own record says it, and not the layout.
    is_own: bool = False


def guidance_for(layout: str, own: Mapping[str, Sequence[str]]) -> list[Guidance]:
    """In the order of the prompt; `own` are the active tools by name with their own guidelines."""
    table = TABLES.get(layout)
    if table is None:
        return []
    rules = {line: rule for rule in (*table.rules, *table.standing) for line in rule.words}
    told = table.told(own, own)
    return [
        Guidance(line, [name], is_own=True) if name else Guidance(line, behind(rules[line], own.keys()))
        for line, name in told.items()
    ]


def behind(rule: Rule, names: AbstractSet[str]) -> list[str]:
    """The tools of an agent that a rule looks at."""
    return [name for name in names if name in rule.needs.every or name in rule.needs.some]

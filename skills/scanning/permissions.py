"""Keys in a skill's head that would let an agent do more than its owner granted."""

import re
from collections.abc import Iterator

from skills.scanning.findings import Finder, Hit
from skills.scanning.prefilter import Gate, Glance

# Front matter longer than this is refused by the parser.
HEAD_LIMIT = 16_384
FENCE = re.compile(r"\ufeff?---[ \t]*\r?\n")
FLAGS = re.IGNORECASE | re.MULTILINE | re.VERBOSE
# A key at the margin with its value: the rest of the line, and lines indented or listed under it.
TOOLS = re.compile(
    r"""^["']?(?:allowed|permitted)[-_]?tools["']?[ \t]*+:(?P<value>[^\n]*+(?:\n[ \t-][^\n]*+)*+)""", FLAGS
)
# Everything; a shell without a bound; a bound that binds nothing; an interpreter, which can run anything.
GRANTS = re.compile(
    r"""
      (?<![\w(:/*.])\*(?![\w*/.)])
    | \bmcp__\*
    | \b(?:bash|shell|sh|exec|execute|terminal|computer|run_command|powershell)\b(?!\s?\(|[-\w.:/])
    | \b\w{1,40}\([*:/\s]{1,8}\)
    | \b(?:bash|shell|exec|powershell)\(\s{0,5}
      (?:sudo|su|sh|bash|zsh|eval|env|xargs|python3?|node|perl|ruby|npx|uvx|ssh|curl|wget|rm)\b[^)\n]{0,40}\*
    | (?P<bounded>\b\w{1,40}\([^)\n]{0,200}+\))
    """,
    FLAGS,
)
MODE = re.compile(
    r"""
    ^["']?(?:
      permission[-_]?mode["']?[ \t]*+:[ \t]*+["']?(?:bypass|accept|dontask|yolo|auto)\w{0,30}
    | (?:dangerously[-_]?[\w-]{1,40}|(?:auto|always)[-_]?(?:approve|allow)|bypass[-_]?permissions)
      ["']?[ \t]*+:
    | sandbox["']?[ \t]*+:[ \t]*+["']?(?:false|off|no|none|danger)
    )
    """,
    FLAGS,
)
HOOKS = re.compile(r"""^["']?(?:hooks|mcp[-_]?servers)["']?[ \t]*+:""", FLAGS)


def head_end(text: str) -> int:
    """Where the front matter ends; an unclosed one is read as far as a parser would."""
    opened = FENCE.match(text)
    if not opened:
        return 0
    end = text.find("\n---", opened.end() - 1, HEAD_LIMIT)
    return min(len(text), HEAD_LIMIT) if end < 0 else end


def mentions(*words: str) -> Gate:
    """Whether the head holds one of these; letters that only resemble theirs are left to the pattern."""

    def may_find(look: Glance) -> bool:
        head = look.text[: head_end(look.text)].lower()
        return not head.isascii() or any(map(head.__contains__, words))

    return may_find


def wide_tools(text: str) -> Iterator[Hit]:
    """Each grant among the allowed tools that has no bound."""
    for key in TOOLS.finditer(text, 0, head_end(text)):
        for grant in GRANTS.finditer(text, *key.span("value")):
            if not grant["bounded"]:
                yield Hit(*grant.span())


def in_head(pattern: re.Pattern[str]) -> Finder:
    return lambda text: (Hit(*found.span()) for found in pattern.finditer(text, 0, head_end(text)))


permission_modes = in_head(MODE)
hooks = in_head(HOOKS)

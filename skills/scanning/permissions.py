"""Finders for front matter keys of a skill that would extend the permissions of an agent."""

import re
from collections.abc import Iterator

from skills.scanning.findings import MatchFinder, RuleMatch
from skills.scanning.prefilter import RulePrefilter, TextFeatures

# In characters. The parser of skills refuses longer front matter.
MAX_FRONT_MATTER_LENGTH = 16_384
FENCE_PATTERN = re.compile(r"\ufeff?---[ \t]*\r?\n")
REGEX_FLAGS = re.IGNORECASE | re.MULTILINE | re.VERBOSE
# The top-level key `allowed-tools` with its value: the rest of the line, and the following lines that are
# indented or begin with a hyphen.
ALLOWED_TOOLS_PATTERN = re.compile(
    r"""^["']?(?:allowed|permitted)[-_]?tools["']?[ \t]*+:(?P<value>[^\n]*+(?:\n[ \t-][^\n]*+)*+)""",
    REGEX_FLAGS,
)
# One allowed tool. The group `bounded` matches restricted tools. The other alternatives are unrestricted: a
# wildcard, a shell without arguments, a tool whose argument is a wildcard, and a shell that may start a
# command such as an interpreter with any arguments.
TOOL_GRANT_PATTERN = re.compile(
    r"""
      (?<![\w(:/*.])\*(?![\w*/.)])
    | \bmcp__\*
    | \b(?:bash|shell|sh|exec|execute|terminal|computer|run_command|powershell)\b(?!\s?\(|[-\w.:/])
    | \b\w{1,40}\([*:/\s]{1,8}\)
    | \b(?:bash|shell|exec|powershell)\(\s{0,5}
      (?:sudo|su|sh|bash|zsh|eval|env|xargs|python3?|node|perl|ruby|npx|uvx|ssh|curl|wget|rm)\b[^)\n]{0,40}\*
    | (?P<bounded>\b\w{1,40}\([^)\n]{0,200}+\))
    """,
    REGEX_FLAGS,
)
PERMISSION_MODE_PATTERN = re.compile(
    r"""
    ^["']?(?:
      permission[-_]?mode["']?[ \t]*+:[ \t]*+["']?(?:bypass|accept|dontask|yolo|auto)\w{0,30}
    | (?:dangerously[-_]?[\w-]{1,40}|(?:auto|always)[-_]?(?:approve|allow)|bypass[-_]?permissions)
      ["']?[ \t]*+:
    | sandbox["']?[ \t]*+:[ \t]*+["']?(?:false|off|no|none|danger)
    )
    """,
    REGEX_FLAGS,
)
HOOKS_PATTERN = re.compile(r"""^["']?(?:hooks|mcp[-_]?servers)["']?[ \t]*+:""", REGEX_FLAGS)


def find_front_matter_end(text: str) -> int:
    """Return the offset of the end of the front matter, 0 if there is none.

    Unclosed front matter ends at the length limit of the parser.
    """
    fence = FENCE_PATTERN.match(text)
    if not fence:
        return 0
    end = text.find("\n---", fence.end() - 1, MAX_FRONT_MATTER_LENGTH)
    return min(len(text), MAX_FRONT_MATTER_LENGTH) if end < 0 else end


def build_keyword_prefilter(*keywords: str) -> RulePrefilter:
    """Build a prefilter that accepts front matter with any of the keywords.

    Front matter with non-ASCII characters is always accepted, because the regexes ignore case and then treat
    some non-ASCII letters, such as ſ, like ASCII letters.
    """

    def may_find(features: TextFeatures) -> bool:
        front_matter = features.text[: find_front_matter_end(features.text)].lower()
        return not front_matter.isascii() or any(map(front_matter.__contains__, keywords))

    return may_find


def find_unbounded_tools(text: str) -> Iterator[RuleMatch]:
    """Find each unrestricted entry of the allowed tools."""
    for key in ALLOWED_TOOLS_PATTERN.finditer(text, 0, find_front_matter_end(text)):
        for grant in TOOL_GRANT_PATTERN.finditer(text, *key.span("value")):
            if not grant["bounded"]:
                yield RuleMatch(*grant.span())


def build_front_matter_finder(pattern: re.Pattern[str]) -> MatchFinder:
    return lambda text: (
        RuleMatch(*match.span()) for match in pattern.finditer(text, 0, find_front_matter_end(text))
    )


find_permission_modes = build_front_matter_finder(PERMISSION_MODE_PATTERN)
find_hooks = build_front_matter_finder(HOOKS_PATTERN)

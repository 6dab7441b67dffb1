"""Decode the bytes of a file to text, or return the problems."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

from core.text.front_matter import BOM, MAX_PROBLEMS, find_character_problems, normalize_newlines
from core.text.sizes import format_size
from skills.skill_format.rules import SkillFlaw, SkillProblem

MAX_FILE_BYTES = 256 * 1024
# The same pattern is defined in prompts/assembly, which must not import from this package.
COMMENT_PATTERN = re.compile(r"\s*<!--.*?-->\s*", re.DOTALL)


@dataclass(frozen=True)
class WorkspaceText:
    text: str
    problems: tuple[SkillProblem, ...] = ()


def read_workspace_file(source: str | bytes, *, max_bytes: int = MAX_FILE_BYTES) -> WorkspaceText:
    """Read AGENTS.md, TOOLS.md and similar files as plain text, without leading comments."""
    text, problems = decode_text(source, max_bytes)
    text = normalize_newlines(text.removeprefix(BOM))
    problems = problems or list_unreadable_characters(text, "", 1)
    return WorkspaceText("" if problems else strip_leading_comments(text), problems)


def strip_leading_comments(text: str) -> str:
    """Remove leading HTML comments and the white space around them. An unclosed comment is kept as text."""
    start = 0
    while comment := COMMENT_PATTERN.match(text, start):
        start = comment.end()
    return text[start:]


def decode_text(source: str | bytes, max_bytes: int = MAX_FILE_BYTES) -> tuple[str, tuple[SkillProblem, ...]]:
    """Decode UTF-8. Return an empty text and a problem if the file is too large or not UTF-8."""
    if isinstance(source, str) and 4 * len(source) <= max_bytes:
        # A character has at most four bytes in UTF-8, so the text need not be encoded to check its size.
        return source, ()
    data = source.encode(errors="surrogatepass") if isinstance(source, str) else source
    if len(data) > max_bytes:
        message = f"The file is larger than {format_size(max_bytes)}."
        return "", (SkillProblem("", message, 1, SkillFlaw.UNREADABLE),)
    try:
        return (source if isinstance(source, str) else source.decode()), ()
    except UnicodeDecodeError as error:
        return "", (_build_utf8_problem(data, error.start),)


def list_unreadable_characters(text: str, field: str, line: int) -> tuple[SkillProblem, ...]:
    problems = islice(find_character_problems(text, field, line), MAX_PROBLEMS)
    return tuple(
        [
            SkillProblem(problem.field, problem.message, problem.line, SkillFlaw.UNREADABLE)
            for problem in problems
        ]
    )


def _build_utf8_problem(data: bytes, position: int) -> SkillProblem:
    hint = " The file seems to be UTF-16. Save it as UTF-8." if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
    message = f"Byte {position + 1} (0x{data[position]:02X}) is not UTF-8.{hint}"
    return SkillProblem("", message, data.count(b"\n", 0, position) + 1, SkillFlaw.UNREADABLE)

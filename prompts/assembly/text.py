"""Escape and truncate text for attributes, tags, single lines, table cells and code blocks."""

import re
from collections.abc import Iterable
from functools import cache

ATTRIBUTE_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;", "\n": "&#10;"}
)
BACKTICKS_PATTERN = re.compile(r"`+")
FENCE_PATTERN = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)


def escape_attribute(value: str) -> str:
    """Escape a value for a double-quoted attribute."""
    return value if is_attribute_safe(value) else value.translate(ATTRIBUTE_ESCAPES)


def escape_attributes(values: list[str]) -> list[str]:
    """Escape many values. One check of the joined values comes first, because usually none needs escaping."""
    return values if is_attribute_safe("".join(values)) else [escape_attribute(value) for value in values]


def is_attribute_safe(text: str) -> bool:
    # Substring tests are faster than a regular expression, and much faster than str.translate.
    return not ("&" in text or "<" in text or ">" in text or '"' in text or "'" in text or "\n" in text)


def escape_markup(text: str) -> str:
    """Escape `&`, `<` and `>`, so that the text contains no tag."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escape_closing_tags(text: str, *tags: str) -> str:
    """Escape the closing forms of these tags, in any case and spacing; other text is unchanged."""
    if "<" not in text:
        return text
    for tag in tags:
        text = build_closing_pattern(tag).sub(r"&lt;\1", text)
    return text


@cache
def build_loose_closing_pattern(tag: str) -> re.Pattern[str]:
    """Compile a prefilter for joined chunks: it matches if `build_closing_pattern` matches in any chunk."""
    return re.compile(rf"<\s*/\s*{re.escape(tag)}", re.IGNORECASE)


@cache
def build_closing_pattern(tag: str) -> re.Pattern[str]:
    # Also match an unfinished closing tag at the end of the text: the text that follows could complete it.
    return re.compile(rf"<(\s*/\s*{re.escape(tag)}(?=[\s/>]|\Z))", re.IGNORECASE)


def collapse_whitespace(text: str) -> str:
    """Collapse all whitespace to single spaces, so that the text is one line."""
    return " ".join(text.split())


def collapse_lines(text: str) -> str:
    """Collapse whitespace only when the text has more than one line."""
    return collapse_whitespace(text) if "\n" in text else text


def indent_continuation(text: str, by: str = "  ") -> str:
    """Indent the continuation lines of a list entry."""
    return text.replace("\n", f"\n{by}") if "\n" in text else text


def format_bullet(text: str) -> str:
    """Format a list entry; continuation lines are indented so that they are not read as entries."""
    return f"- {indent_continuation(text)}"


def format_table_cell(text: str) -> str:
    """Format one line for a table cell, with `|` escaped."""
    return collapse_whitespace(text).replace("|", "\\|")


def truncate_text(text: str, limit: int, mark: str = "…") -> str:
    """Truncate a text longer than `limit` characters and append the mark."""
    return text if len(text) <= limit else f"{text[:limit]}{mark}"


def normalize_line_ends(text: str) -> str:
    """Convert line ends to LF."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def join_lines(parts: Iterable[str]) -> str:
    """Join the non-empty parts with line breaks."""
    return "\n".join(part for part in parts if part)


def format_cut_notice(left_out: int) -> str:
    """Format the notice that replaces removed text."""
    return f"\n[… {left_out:,} characters left out]"


def format_code_span(text: str) -> str:
    """Format a code span that backticks in the text cannot end."""
    if "`" not in text:
        return f"`{text}`"
    ticks = "`" * (_count_longest_backticks(text) + 1)
    return f"{ticks} {text} {ticks}" if "`" in (text[0], text[-1]) else f"{ticks}{text}{ticks}"


def format_code_block(text: str) -> str:
    """Format a code block that nothing in the text can end."""
    ticks = "`" * max(3, _count_longest_backticks(text) + 1) if "```" in text else "```"
    return f"{ticks}\n{text}\n{ticks}"


def close_code_fences(text: str) -> str:
    """Close an open code block, so that the following text is not read as code."""
    if "```" not in text and "~~~" not in text:
        return text
    opened = ""
    for mark, rest in FENCE_PATTERN.findall(text):
        if not opened:
            # In Markdown, a line with another backtick after its opening ``` is a code span, not a fence.
            opened = "" if mark[0] == "`" and "`" in rest else mark
        elif mark.startswith(opened) and not rest.strip():
            opened = ""
    return f"{text}\n{opened}" if opened else text


def _count_longest_backticks(text: str) -> int:
    return max(map(len, BACKTICKS_PATTERN.findall(text)), default=0)

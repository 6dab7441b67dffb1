"""The one place where text is made safe: attributes, closing tags, single lines, table cells, cuts."""

import re
from collections.abc import Iterable
from functools import cache

ATTRIBUTE_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;", "\n": "&#10;"}
)
BACKTICKS_PATTERN = re.compile(r"`+")
FENCE_PATTERN = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)


def escape_attribute(value: str) -> str:
    """A value that can stand between double quotes in a tag."""
    return value if is_attribute_safe(value) else value.translate(ATTRIBUTE_ESCAPES)


def escape_attributes(values: list[str]) -> list[str]:
    """The same for many: one look at all of them is enough when none needs anything, as is usual."""
    return values if is_attribute_safe("".join(values)) else [escape_attribute(value) for value in values]


def is_attribute_safe(text: str) -> bool:
    # Asking like this is quicker than a pattern, and far quicker than translating.
    return not ("&" in text or "<" in text or ">" in text or '"' in text or "'" in text or "\n" in text)


def escape_markup(text: str) -> str:
    """Text in which no tag at all survives."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escape_closing_tags(text: str, *tags: str) -> str:
    """Text that cannot close any of these tags, whatever the case or spacing; all else passes unchanged."""
    if "<" not in text:
        return text
    for tag in tags:
        text = build_closing_pattern(tag).sub(r"&lt;\1", text)
    return text


@cache
def build_loose_closing_pattern(tag: str) -> re.Pattern[str]:
    """Finds whatever `closing` finds in any part of a text, and a little more: a quick look beforehand."""
    return re.compile(rf"<\s*/\s*{re.escape(tag)}", re.IGNORECASE)


@cache
def build_closing_pattern(tag: str) -> re.Pattern[str]:
    # Unfinished at the end counts too: our own closing tag would finish it.
    return re.compile(rf"<(\s*/\s*{re.escape(tag)}(?=[\s/>]|\Z))", re.IGNORECASE)


def collapse_whitespace(text: str) -> str:
    """All on one line, so that a list stays a list."""
    return " ".join(text.split())


def collapse_lines(text: str) -> str:
    """Text as it is written, unless it has more than one line."""
    return collapse_whitespace(text) if "\n" in text else text


def indent_continuation(text: str, by: str = "  ") -> str:
    """Later lines of a list entry, moved under its first."""
    return text.replace("\n", f"\n{by}") if "\n" in text else text


def format_bullet(text: str) -> str:
    """A list entry whose further lines cannot be mistaken for entries of their own."""
    return f"- {indent_continuation(text)}"


def format_table_cell(text: str) -> str:
    """A table cell that cannot open another one."""
    return collapse_whitespace(text).replace("|", "\\|")


def truncate_text(text: str, limit: int, mark: str = "…") -> str:
    """At most `limit` characters, then the mark; exactly `limit` stays whole."""
    return text if len(text) <= limit else f"{text[:limit]}{mark}"


def normalize_line_ends(text: str) -> str:
    """Line ends as LF."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def join_lines(parts: Iterable[str]) -> str:
    """The non-empty parts, one under the other."""
    return "\n".join(part for part in parts if part)


def format_cut_notice(left_out: int) -> str:
    """What a reader, and the model, see where text was left out."""
    return f"\n[… {left_out:,} characters left out]"


def format_code_span(text: str) -> str:
    """A code span that backticks inside it cannot end."""
    if "`" not in text:
        return f"`{text}`"
    ticks = "`" * (_count_longest_backticks(text) + 1)
    return f"{ticks} {text} {ticks}" if "`" in (text[0], text[-1]) else f"{ticks}{text}{ticks}"


def format_code_block(text: str) -> str:
    """A code block that nothing inside it can end."""
    ticks = "`" * max(3, _count_longest_backticks(text) + 1) if "```" in text else "```"
    return f"{ticks}\n{text}\n{ticks}"


def close_code_fences(text: str) -> str:
    """Text that leaves no code block open, so that what follows it is not taken for code."""
    if "```" not in text and "~~~" not in text:
        return text
    opened = ""
    for mark, rest in FENCE_PATTERN.findall(text):
        if not opened:
            # Markdown allows no backtick behind an opening fence: that line is a code span.
            opened = "" if mark[0] == "`" and "`" in rest else mark
        elif mark.startswith(opened) and not rest.strip():
            opened = ""
    return f"{text}\n{opened}" if opened else text


def _count_longest_backticks(text: str) -> int:
    return max(map(len, BACKTICKS_PATTERN.findall(text)), default=0)

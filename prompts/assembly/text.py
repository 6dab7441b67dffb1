"""The one place where text is made safe: attributes, closing tags, single lines, table cells, cuts."""

import re
from collections.abc import Iterable
from functools import cache

ATTRIBUTE = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;", "\n": "&#10;"}
)
BACKTICKS = re.compile(r"`+")
FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)


def attribute(value: str) -> str:
    """A value that can stand between double quotes in a tag."""
    return value if is_plain(value) else value.translate(ATTRIBUTE)


def attributes(values: list[str]) -> list[str]:
    """The same for many: one look at all of them is enough when none needs anything, as is usual."""
    return values if is_plain("".join(values)) else [attribute(value) for value in values]


def is_plain(text: str) -> bool:
    # Asking like this is quicker than a pattern, and far quicker than translating.
    return not ("&" in text or "<" in text or ">" in text or '"' in text or "'" in text or "\n" in text)


def escaped(text: str) -> str:
    """Text in which no tag at all survives."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def guarded(text: str, *tags: str) -> str:
    """Text that cannot close any of these tags, whatever the case or spacing; all else passes unchanged."""
    if "<" not in text:
        return text
    for tag in tags:
        text = closing(tag).sub(r"&lt;\1", text)
    return text


@cache
def likely_closing(tag: str) -> re.Pattern[str]:
    """Finds whatever `closing` finds in any part of a text, and a little more: a quick look beforehand."""
    return re.compile(rf"<\s*/\s*{re.escape(tag)}", re.IGNORECASE)


@cache
def closing(tag: str) -> re.Pattern[str]:
    # Unfinished at the end counts too: our own closing tag would finish it.
    return re.compile(rf"<(\s*/\s*{re.escape(tag)}(?=[\s/>]|\Z))", re.IGNORECASE)


def single_line(text: str) -> str:
    """All on one line, so that a list stays a list."""
    return " ".join(text.split())


def on_one_line(text: str) -> str:
    """Text as it is written, unless it has more than one line."""
    return single_line(text) if "\n" in text else text


def indented(text: str, by: str = "  ") -> str:
    """Later lines of a list entry, moved under its first."""
    return text.replace("\n", f"\n{by}") if "\n" in text else text


def bullet(text: str) -> str:
    """A list entry whose further lines cannot be mistaken for entries of their own."""
    return f"- {indented(text)}"


def cell(text: str) -> str:
    """A table cell that cannot open another one."""
    return single_line(text).replace("|", "\\|")


def cut(text: str, limit: int, mark: str = "…") -> str:
    """At most `limit` characters, then the mark; exactly `limit` stays whole."""
    return text if len(text) <= limit else f"{text[:limit]}{mark}"


def normalised(text: str) -> str:
    """Line ends as LF."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def lines(parts: Iterable[str]) -> str:
    """The non-empty parts, one under the other."""
    return "\n".join(part for part in parts if part)


def cut_notice(left_out: int) -> str:
    """What a reader, and the model, see where text was left out."""
    return f"\n[… {left_out:,} characters left out]"


def code(text: str) -> str:
    """A code span that backticks inside it cannot end."""
    if "`" not in text:
        return f"`{text}`"
    ticks = "`" * (_longest_run(text) + 1)
    return f"{ticks} {text} {ticks}" if "`" in (text[0], text[-1]) else f"{ticks}{text}{ticks}"


def fenced(text: str) -> str:
    """A code block that nothing inside it can end."""
    ticks = "`" * max(3, _longest_run(text) + 1) if "```" in text else "```"
    return f"{ticks}\n{text}\n{ticks}"


def fences_closed(text: str) -> str:
    """Text that leaves no code block open, so that what follows it is not taken for code."""
    if "```" not in text and "~~~" not in text:
        return text
    opened = ""
    for mark, rest in FENCE.findall(text):
        if not opened:
            # Markdown allows no backtick behind an opening fence: that line is a code span.
            opened = "" if mark[0] == "`" and "`" in rest else mark
        elif mark.startswith(opened) and not rest.strip():
            opened = ""
    return f"{text}\n{opened}" if opened else text


def _longest_run(text: str) -> int:
    return max(map(len, BACKTICKS.findall(text)), default=0)

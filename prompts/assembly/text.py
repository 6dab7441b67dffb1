"""The one place where text is made safe: attributes, closing tags, single lines, table cells, cuts."""

import re
from collections.abc import Iterable
from functools import cache

ATTRIBUTE = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;", "\n": "&#10;"}
)
BODY = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
SPACES = re.compile(r"\s+")


def attribute(value: str) -> str:
    """A value that can stand between double quotes in a tag."""
    return value.translate(ATTRIBUTE)


def escaped(text: str) -> str:
    """Text in which no tag at all survives."""
    return text.translate(BODY)


def guarded(text: str, *tags: str) -> str:
    """Text that cannot close any of these tags, whatever the case or spacing; all else passes unchanged."""
    if "<" not in text:
        return text
    for tag in tags:
        text = closing(tag).sub(r"&lt;\1", text)
    return text


@cache
def closing(tag: str) -> re.Pattern[str]:
    # Unfinished at the end counts too: our own closing tag would finish it.
    return re.compile(rf"<(\s*/\s*{re.escape(tag)}(?=[\s/>]|\Z))", re.IGNORECASE)


def single_line(text: str) -> str:
    """All on one line, so that a list stays a list."""
    return SPACES.sub(" ", text).strip()


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

"""Answers as lines for a terminal; nothing in them can move its cursor."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dramatis_client.problems import FieldError, Problem

MARKS = {"added": "+", "removed": "-"}


def plain(text: str) -> str:
    """What a terminal would obey rather than show is written as an escape."""
    return "".join([char if char.isprintable() else f"\\u{ord(char):04x}" for char in text])


def problem_lines(problem: Problem) -> list[str]:
    first = f"{problem.status} {plain(problem.code)}: {plain(problem.detail)}"
    asked = [f"request id: {plain(problem.request_id)}"] if problem.request_id else []
    return [first, *[f"  {where(one)}{plain(one.detail)}" for one in problem.errors], *asked]


def where(error: FieldError) -> str:
    place = error.pointer or error.parameter or error.header
    return f"{plain(place)}: " if place else ""


def diff_lines(said: Mapping[str, Any]) -> Iterator[str]:
    """The changed lines of each section, marked as usual."""
    for section in said["sections"]:
        lines = [line for line in section["lines"] if line["kind"] in MARKS]
        if section["state"] == "same" and not section["is_moved"]:
            continue
        moved = ", moved" if section["is_moved"] else ""
        yield f"@@ {plain(section['name'])} ({plain(section['state'])}{moved})"
        yield from [f"{MARKS[line['kind']]} {plain(line['text'])}" for line in lines]
        if section["withheld"]:
            yield plain(section["withheld"])


def push_lines(said: Mapping[str, Any]) -> Iterator[str]:
    """What became of files that no prompt will hold as they are."""
    for one in said["refused"]:
        yield f"refused: {plain(one['path'])}: {plain(one['reason'])}"
    for one in said["quarantined"]:
        yield f"quarantined: {plain(one['path'])}: {messages(one['findings'])}"
    for one in said["invalid"]:
        yield f"not usable: {plain(one['path'])}: {messages(one['problems'])}"
    for one in said["unused"]:
        yield f"not read by any rule of the source: {plain(one['path'])}: {plain(one['reason'])}"


def messages(found: Sequence[Mapping[str, Any]]) -> str:
    return " ".join([plain(one["message"]) for one in found])


def is_lacking(said: Mapping[str, Any]) -> bool:
    """Whether something was pushed that will not be used; what no rule reads is no fault."""
    return bool(said["refused"] or said["quarantined"] or said["invalid"])

"""Print text, JSON and notes, and format responses as lines with control characters escaped."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dramatis_client.problems import FieldError, Problem

EXIT_DONE, EXIT_REFUSED, EXIT_USAGE, EXIT_UNAVAILABLE = 0, 1, 2, 3
LINE_MARKS = {"added": "+", "removed": "-"}


def escape(text: str) -> str:
    """Escape control characters, so that text from the server cannot control the terminal."""
    return "".join([char if char.isprintable() else f"\\u{ord(char):04x}" for char in text])


def format_problem(problem: Problem) -> list[str]:
    summary = f"{problem.status} {escape(problem.code)}: {escape(problem.detail)}"
    request_id = [f"request id: {escape(problem.request_id)}"] if problem.request_id else []
    return [
        summary,
        *[f"  {format_location(error)}{escape(error.detail)}" for error in problem.errors],
        *request_id,
    ]


def format_location(error: FieldError) -> str:
    place = error.pointer or error.parameter or error.header
    return f"{escape(place)}: " if place else ""


def format_diff(diff: Mapping[str, Any]) -> Iterator[str]:
    """Yield the changed lines of each section, marked with + and -."""
    for section in diff["sections"]:
        lines = [line for line in section["lines"] if line["kind"] in LINE_MARKS]
        if section["status"] == "same" and not section["is_moved"]:
            continue
        moved = ", moved" if section["is_moved"] else ""
        yield f"@@ {escape(section['name'])} ({escape(section['status'])}{moved})"
        yield from [f"{LINE_MARKS[line['kind']]} {escape(line['text'])}" for line in lines]
        if section["withheld"]:
            yield escape(section["withheld"])


def format_push(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each pushed file that will not be used in prompts."""
    for file in result["refused"]:
        yield f"rejected: {escape(file['path'])}: {escape(file['reason'])}"
    for file in result["quarantined"]:
        yield f"quarantined: {escape(file['path'])}: {join_messages(file['findings'])}"
    for file in result["invalid"]:
        yield f"not usable: {escape(file['path'])}: {join_messages(file['problems'])}"
    for file in result["unused"]:
        yield f"no rule of the source matches: {escape(file['path'])}: {escape(file['reason'])}"


def join_messages(issues: Sequence[Mapping[str, Any]]) -> str:
    return " ".join([escape(issue["message"]) for issue in issues])


def has_rejected_files(result: Mapping[str, Any]) -> bool:
    """Return whether pushed files were rejected; files that no rule reads do not count."""
    return bool(result["refused"] or result["quarantined"] or result["invalid"])


def print_json(value: Any) -> int:
    return print_text(json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n")


def print_text(text: str) -> int:
    """Write UTF-8 bytes unchanged, whatever the terminal's encoding and line ends."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()
    return EXIT_DONE


def print_notes(lines: Sequence[str], exit_code: int) -> int:
    """Write lines to standard error and return the exit code."""
    for line in lines:
        sys.stderr.write(f"dramatis: {line}\n")
    return exit_code

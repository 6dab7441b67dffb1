"""Why a head is no YAML of ours, told by PyYAML's events and errors in words for its author."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from core.text.problems import Problem
from core.text.yaml_events import MAX_DEPTH, pyyaml_events

NO_ALIAS = "Anchors and aliases are not allowed; put a value that begins with & or * in quotes."
REFUSALS = {
    "anchor": NO_ALIAS,
    "tag": "Tags are not allowed; put a value that begins with ! in quotes.",
    "explicit": "Only one block of keys is allowed, so no line may begin with --- or ... here.",
}
HINTS = {
    "while scanning an alias": NO_ALIAS,
    "while scanning an anchor": NO_ALIAS,
    "mapping values are not allowed here": 'A value that contains ": " must be in quotes.',
    "could not find expected ':'": 'Every line needs the shape "key: value".',
    "found character '\\t' that cannot start any token": "Indent with spaces; a tab is not allowed here.",
}


def event_problems(head: str, first_line: int) -> Iterator[Problem]:
    depth, line = 0, first_line
    try:
        for event in pyyaml_events(head):
            line = first_line + event.start_mark.line
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                yield Problem("", line, f"Keys and lists are nested more than {MAX_DEPTH} deep.")
                return
            reasons = [reason for name, reason in REFUSALS.items() if getattr(event, name, None)]
            yield from (Problem("", line, reason) for reason in reasons)
    except yaml.MarkedYAMLError as error:
        yield _syntax_problem(error, first_line)
    except (ValueError, OverflowError):  # PyYAML lets chr() stumble over an escape such as \UFFFFFFFF.
        yield Problem("", line, "An escape here or below does not stand for any character.")


def _syntax_problem(error: yaml.MarkedYAMLError, first_line: int) -> Problem:
    context, problem = error.context or "", error.problem or ""
    # A quote left open is noticed at the end; the person wants the line where it began.
    mark = (error.context_mark if context.startswith("while scanning") else None) or error.problem_mark
    message = HINTS.get(context) or HINTS.get(problem) or f"This is not valid YAML: {problem}."
    return Problem("", first_line + (mark.line if mark else 0), message)

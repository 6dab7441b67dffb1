"""Texts for users: why a file is in its state. Pure functions."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from core.text.lists import format_short_list
from skills.models import ContextFile, FileState

KIND_LABELS = {
    "base": _("System prompt"),
    "append": _("System prompt addition"),
    "persona": _("Persona file"),
    "context": _("Context file"),
    "workspace": _("Workspace file"),
    "skill": _("Skill"),
}
# The states that need a user's attention, most severe first. The inbox is sorted in this order.
STATES_BY_SEVERITY = (
    FileState.QUARANTINED,
    FileState.INVALID,
    FileState.MISSING,
    FileState.CHANGED,
    FileState.NEW,
)
STATE_REASONS: Mapping[str, str | Promise] = {
    FileState.MISSING: _("This file is no longer in its source."),
    FileState.CHANGED: _("The content has changed since it was last approved."),
    FileState.NEW: _("Not reviewed yet."),
    FileState.IGNORED: _("Ignored and left out of all prompts."),
}
MAX_LINES_NAMED = 3


def list_state_reasons(file: ContextFile) -> list[str]:
    """Return the reasons for the file's state, each as one or two sentences."""
    if file.state in STATE_REASONS:
        return [str(STATE_REASONS[file.state])]
    if file.problem:
        return [file.problem]
    latest = file.latest
    if latest is None or file.state == FileState.CURRENT:
        return []
    if file.state == FileState.QUARANTINED:
        return format_messages([finding for finding in latest.findings if finding["severity"] == "block"])
    return format_messages(latest.problems) or [gettext("This file cannot be read.")]


def format_messages(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return each distinct message once, with the line numbers it applies to."""
    lines: dict[str, list[int]] = {}
    for entry in entries:
        lines.setdefault(entry["message"], []).append(entry["line"])
    return [
        format_message(message, sorted({line for line in line_numbers if line}))
        for message, line_numbers in lines.items()
    ]


def format_message(message: str, lines: list[int]) -> str:
    if not lines:
        return message
    template = ngettext("Line %(lines)s: %(message)s", "Lines %(lines)s: %(message)s", len(lines))
    return template % {"lines": format_short_list(list(map(str, lines)), MAX_LINES_NAMED), "message": message}

"""Texts for users: why a file has its status. Pure functions."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from core.text.lists import format_short_list
from skills.models import ContextFile, FileStatus

KIND_LABELS = {
    "base": _("System prompt"),
    "append": _("System prompt addition"),
    "persona": _("Persona file"),
    "context": _("Context file"),
    "workspace": _("Workspace file"),
    "skill": _("Skill"),
}
# The statuses that need a user's attention, most severe first. The inbox is sorted in this order.
STATUSES_BY_SEVERITY = (
    FileStatus.QUARANTINED,
    FileStatus.INVALID,
    FileStatus.MISSING,
    FileStatus.CHANGED,
    FileStatus.NEW,
)
STATUS_REASONS: Mapping[str, str | Promise] = {
    FileStatus.MISSING: _("This file is no longer in its source."),
    FileStatus.CHANGED: _("The content has changed since it was last approved."),
    FileStatus.NEW: _("Not reviewed yet."),
    FileStatus.IGNORED: _("Ignored and left out of all prompts."),
}
MAX_LINES_NAMED = 3


def list_status_reasons(file: ContextFile) -> list[str]:
    """Return the reasons for the file's status, each as one or two sentences."""
    if file.status in STATUS_REASONS:
        return [str(STATUS_REASONS[file.status])]
    if file.problem:
        return [file.problem]
    latest = file.latest
    if latest is None or file.status == FileStatus.CURRENT:
        return []
    if file.status == FileStatus.QUARANTINED:
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

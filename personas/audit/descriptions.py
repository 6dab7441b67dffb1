"""Display of audit events: the kinds of objects to filter by, and the changed fields of an event."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from core.text.diff import DiffLine, diff_lines
from personas.ui.display_names import EMPTY_VALUE_DISPLAY, get_display_name

# Kinds of objects that the filter form offers. The list is fixed, because SELECT DISTINCT on an ever-growing
# table is slow. The query string accepts other kinds too.
AUDIT_KINDS = (
    "agent",
    "identity",
    "soul",
    "user_profile",
    "memory",
    "responsibility",
    "task",
    "tool",
    "channel",
    "skill",
    "source",
    "allowed_folder",
    "file",
    "rule_set",
    "prompt_settings",
    "label",
    "release",
    "ledger",
    "verification",
    "key",
    "webhook",
    "member",
    "invitation",
    "workspace",
)
# Maximum number of characters of both values together. Longer values are displayed without a line diff.
MAX_DIFF_LENGTH = 100_000


@dataclass(frozen=True)
class FieldChange:
    """One field of an audit event, with the values before and after. Multi-line texts have a line diff."""

    label: str
    before: str
    after: str

    @property
    def is_same(self) -> bool:
        return self.before == self.after

    @property
    def lines(self) -> Sequence[DiffLine]:
        is_long = "\n" in self.before or "\n" in self.after
        if not is_long or EMPTY_VALUE_DISPLAY in {self.before, self.after}:
            return []
        return diff_lines(self.before, self.after) if len(self.before + self.after) < MAX_DIFF_LENGTH else []


def list_field_changes(before: dict[str, Any] | None, after: dict[str, Any] | None) -> list[FieldChange]:
    """Return all fields of the snapshots `before` and `after`, in the order of `after`."""
    old, new = before or {}, after or {}
    names = [*new, *(name for name in old if name not in new)]
    # If the snapshots have different fields, they are partial: a field that is missing in one is unchanged.
    is_partial = before is not None and after is not None and set(old) != set(new)
    return [
        FieldChange(
            get_display_name(name),
            format_audit_value(old.get(name, new.get(name) if is_partial and name not in old else None)),
            format_audit_value(new.get(name, old.get(name) if is_partial and name not in new else None)),
        )
        for name in names
    ]


def format_audit_value(value: Any) -> str:
    if value is None or value in ("", [], {}):
        return EMPTY_VALUE_DISPLAY
    if isinstance(value, bool):
        return _("Yes") if value else _("No")
    if isinstance(value, list):
        return ", ".join(format_audit_value(item) for item in value)
    if isinstance(value, dict):
        return "; ".join(f"{name}: {format_audit_value(item)}" for name, item in value.items())
    return str(value)

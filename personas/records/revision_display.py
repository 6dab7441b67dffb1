"""Format revisions for display: field values, and the differences between two revisions."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from django.db import models
from django.utils.translation import gettext as _

from core.text.diff import DiffLine, diff_lines
from personas.models import Agent, Channel, Record, Tool
from personas.ui.display_names import EMPTY_VALUE_DISPLAY, get_display_name

# Snapshot fields that contain a list of ids, with the model that the ids belong to.
ID_LIST_MODELS: dict[str, type[Record]] = {
    "tools": Tool,
    "planning_tools": Tool,
    "channels": Channel,
    "agents": Agent,
}


# Values with more characters, or with several lines, are compared line by line.
MAX_SHORT_VALUE = 80
# If both values together have more characters, they are shown without a line diff.
MAX_DIFF_LENGTH = 200_000


@dataclass(frozen=True)
class RevisionChange:
    """One field that differs between two revisions."""

    name: str
    label: str
    before: str
    after: str

    @property
    def lines(self) -> list[DiffLine]:
        """The differences by line; empty for short values, which are shown beside each other."""
        is_text = "\n" in self.before + self.after or max(len(self.before), len(self.after)) > MAX_SHORT_VALUE
        if not is_text or len(self.before) + len(self.after) > MAX_DIFF_LENGTH:
            return []
        return diff_lines(
            *("" if text == EMPTY_VALUE_DISPLAY else text for text in (self.before, self.after))
        )


def list_revision_fields(record: Record, data: dict[str, Any]) -> list[tuple[str, str]]:
    """List the label and the formatted value of every field of a revision."""
    return [
        (get_field_label(record, name), format_field_value(record, name, value))
        for name, value in data.items()
    ]


def compare_revisions(record: Record, before: dict[str, Any], after: dict[str, Any]) -> list[RevisionChange]:
    """List the fields of the snapshot `after` whose values differ from the snapshot `before`."""
    names = [name for name in after if before.get(name) != after[name]]
    return [
        RevisionChange(
            name,
            get_field_label(record, name),
            format_field_value(record, name, before.get(name)),
            format_field_value(record, name, after[name]),
        )
        for name in names
    ]


def get_field_label(record: Record, name: str) -> str:
    return get_display_name(name)


def format_field_value(record: Record, name: str, value: Any) -> str:
    """Format a snapshot value for display. Ids of linked records are replaced by the records' names."""
    if value is None or value in ("", []):
        # In a nullable field, None means that the list is not stated, which differs from an empty list.
        is_stated = value == [] and is_nullable_field(type(record), name)
        return _("Explicitly none") if is_stated else EMPTY_VALUE_DISPLAY
    if isinstance(value, bool):
        return _("Yes") if value else _("No")
    target = get_linked_model(type(record), name)
    if target is not None:
        return format_record_names(record, target, value if isinstance(value, list) else [value])
    if isinstance(value, list):
        return "\n".join(format_list_item(item) for item in value)
    if isinstance(value, dict):
        return "\n".join(f"{key}: {entry}" for key, entry in value.items()) or EMPTY_VALUE_DISPLAY
    return get_choice_label(type(record), name, value) or str(value)


def is_nullable_field(model: type[Record], name: str) -> bool:
    return name in model.content and bool(getattr(model._meta.get_field(name), "null", False))


def get_choice_label(model: type[Record], name: str, value: Any) -> str:
    """Return the display label of a value of a field with choices; an empty string for other fields."""
    field = model._meta.get_field(name) if name in model.content else None
    choices = getattr(field, "flatchoices", ()) if isinstance(value, str) else ()
    return next((str(label) for known, label in choices if known == value), "")


def get_linked_model(model: type[Record], name: str) -> type[Record] | None:
    """Return the model that a content field links to, or None if the field is not a link."""
    if name in ID_LIST_MODELS:
        return ID_LIST_MODELS[name]
    field = model._meta.get_field(name) if name in model.content else None
    return cast("type[Record]", field.remote_field.model) if isinstance(field, models.ForeignKey) else None


def format_record_names(record: Record, target: type[Record], ids: Iterable[int]) -> str:
    pks = list(ids)
    rows = target.objects.in_workspace(record.workspace_id).in_bulk(pks)
    return ", ".join(str(rows[pk]) if pk in rows else _("(unknown record %(pk)s)") % {"pk": pk} for pk in pks)


def format_list_item(item: Any) -> str:
    if isinstance(item, dict) and "title" in item:
        return f"[{'x' if item.get('is_done') else ' '}] {item['title']}"
    return str(item)

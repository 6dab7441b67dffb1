"""Stored content in words: what a revision held, what two of them differ in."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from django.db import models
from django.utils.translation import gettext as _

from personas.models import Agent, Channel, Record, Tool
from personas.ui.display_names import NOTHING, title_of

# Content that is a list of ids, by the kind of record the ids stand for.
LISTS: dict[str, type[Record]] = {"tools": Tool, "planning_tools": Tool, "channels": Channel, "agents": Agent}


@dataclass(frozen=True)
class Change:
    """One field that two states of a record differ in."""

    name: str
    label: str
    before: str
    after: str


def content_of(record: Record, data: dict[str, Any]) -> list[tuple[str, str]]:
    """Every field of a revision with its value in words."""
    return [(field_label(record, name), readable(record, name, value)) for name, value in data.items()]


def changes_between(record: Record, before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
    """The fields that differ, in the record's own order."""
    names = [name for name in after if before.get(name) != after[name]]
    return [
        Change(
            name,
            field_label(record, name),
            readable(record, name, before.get(name)),
            readable(record, name, after[name]),
        )
        for name in names
    ]


def field_label(record: Record, name: str) -> str:
    return title_of(name)


def readable(record: Record, name: str, value: Any) -> str:
    """A stored value as a person would say it; ids become the names they stand for."""
    if value is None or value in ("", []):
        return NOTHING
    if isinstance(value, bool):
        return _("Yes") if value else _("No")
    target = linked_model(type(record), name)
    if target is not None:
        return names_of(record, target, value if isinstance(value, list) else [value])
    if isinstance(value, list):
        return "\n".join(item_words(item) for item in value)
    if isinstance(value, dict):
        return "\n".join(f"{key}: {said}" for key, said in value.items()) or NOTHING
    return choice_words(type(record), name, value) or str(value)


def choice_words(model: type[Record], name: str, value: Any) -> str:
    """What a page calls one of few values; nothing where any value may stand."""
    field = model._meta.get_field(name) if name in model.content else None
    choices = getattr(field, "flatchoices", ()) if isinstance(value, str) else ()
    return next((str(words) for known, words in choices if known == value), "")


def linked_model(model: type[Record], name: str) -> type[Record] | None:
    """The kind of record that a content field points at, if it points at one."""
    if name in LISTS:
        return LISTS[name]
    field = model._meta.get_field(name) if name in model.content else None
    return cast("type[Record]", field.remote_field.model) if isinstance(field, models.ForeignKey) else None


def names_of(record: Record, target: type[Record], ids: Iterable[int]) -> str:
    wanted = list(ids)
    rows = target.objects.in_workspace(record.workspace_id).in_bulk(wanted)
    return ", ".join(
        str(rows[pk]) if pk in rows else _("(no longer known: %(pk)s)") % {"pk": pk} for pk in wanted
    )


def item_words(item: Any) -> str:
    if isinstance(item, dict) and "title" in item:
        return f"[{'x' if item.get('is_done') else ' '}] {item['title']}"
    return str(item)

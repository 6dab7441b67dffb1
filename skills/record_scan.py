"""What the scanner says of text that members typed: flagged by field, never blocked."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from django.utils.translation import gettext_lazy as _

from core.db.fields import LineField, ProseField
from personas.models import Record
from personas.records.revision_display import field_label
from skills.models import Skill
from skills.scanning import Finding, scan

# What pages call otherwise than the column.
LABELS = {("skill", "body"): _("Instructions")}


class Flag(NamedTuple):
    """A finding in one field of a record."""

    field: str
    label: str
    finding: Finding


def flags_in(record: Record) -> list[Flag]:
    """Every finding in what people typed into the record, field by field."""
    return [
        Flag(name, str(LABELS.get((record.kind, name)) or field_label(record, name)), finding)
        for name, text in typed_texts(record)
        for finding in findings_in(record, name, text)
    ]


def typed_texts(record: Record) -> Iterator[tuple[str, str]]:
    for field in record._meta.concrete_fields:
        if isinstance(field, LineField | ProseField) and (text := getattr(record, field.attname)):
            yield field.name, text


def findings_in(record: Record, name: str, text: str) -> list[Finding]:
    found = list(scan(text, kind="typed"))
    if isinstance(record, Skill) and name == "allowed_tools":
        found += wide_tools(text)
    return found


def wide_tools(text: str) -> list[Finding]:
    """The scanner reads grants in a file's head, so it is shown one; the place is the field's own line."""
    found = scan(f"---\nallowed-tools:\n {text}\n---\n", kind="skill")
    return [replace(one, line=1, column=one.column - 1) for one in found if one.rule == "wide-tools"]

"""What the scanner says of text that members typed: flagged by field, never blocked."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from django.utils.translation import gettext_lazy as _

from core.db.fields import LineField, ProseField
from personas.models import Record
from personas.records.revision_display import get_field_label
from skills.models import Skill
from skills.scanning import Finding, scan_text

# What pages call otherwise than the column.
FIELD_LABELS = {("skill", "body"): _("Instructions")}


class FieldFinding(NamedTuple):
    """A finding in one field of a record."""

    field: str
    label: str
    finding: Finding


def scan_record(record: Record) -> list[FieldFinding]:
    """Every finding in what people typed into the record, field by field."""
    return [
        FieldFinding(
            name, str(FIELD_LABELS.get((record.kind, name)) or get_field_label(record, name)), finding
        )
        for name, text in list_text_fields(record)
        for finding in scan_field(record, name, text)
    ]


def list_text_fields(record: Record) -> Iterator[tuple[str, str]]:
    for field in record._meta.concrete_fields:
        if isinstance(field, LineField | ProseField) and (text := getattr(record, field.attname)):
            yield field.name, text


def scan_field(record: Record, name: str, text: str) -> list[Finding]:
    found = list(scan_text(text, kind="typed"))
    if isinstance(record, Skill) and name == "allowed_tools":
        found += scan_allowed_tools(text)
    return found


def scan_allowed_tools(text: str) -> list[Finding]:
    """The scanner reads grants in a file's head, so it is shown one; the place is the field's own line."""
    found = scan_text(f"---\nallowed-tools:\n {text}\n---\n", kind="skill")
    return [replace(one, line=1, column=one.column - 1) for one in found if one.rule == "wide-tools"]

"""Scan the text fields of records for suspicious content. Findings are shown but never block saving."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from django.utils.translation import gettext_lazy as _

from core.db.fields import LineField, ProseField
from core.db.line_lists import LineListField
from personas.models import Record
from personas.records.revision_display import get_field_label
from skills.models import Skill
from skills.scanning import Finding, scan_text

# By record kind and field name: labels used here instead of the field's usual label.
FIELD_LABELS = {("skill", "body"): _("Instructions")}


class FieldFinding(NamedTuple):
    """A scanner finding, with the name and label of the record field in which it was found."""

    field: str
    label: str
    finding: Finding


def scan_record(record: Record) -> list[FieldFinding]:
    """Return all scanner findings in the text fields of the record."""
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
        elif isinstance(field, LineListField) and (lines := getattr(record, field.attname)):
            yield field.name, "\n".join(lines)


def scan_field(record: Record, name: str, text: str) -> list[Finding]:
    findings = list(scan_text(text, kind="typed"))
    if isinstance(record, Skill) and name == "allowed_tools":
        findings += scan_allowed_tools(text)
    return findings


def scan_allowed_tools(text: str) -> list[Finding]:
    """Scan the value of a skill's `allowed_tools` field for tool permissions that are too wide.

    The scanner checks tool permissions only in front matter, so the value is embedded in front matter for
    the scan. Line and column of the findings are then converted to positions in the value.
    """
    findings = scan_text(f"---\nallowed-tools:\n {text}\n---\n", kind="skill")
    return [
        replace(finding, line=1, column=finding.column - 1)
        for finding in findings
        if finding.rule == "wide-tools"
    ]

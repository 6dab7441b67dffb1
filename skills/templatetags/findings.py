"""A warning panel above text that members typed, wherever a record is shown."""

from typing import Any

from django import template

from personas.models import Record
from skills.record_scan import scan_record

register = template.Library()

MAX_FINDINGS_SHOWN = 20


@register.inclusion_tag("skills/_findings.html")
def findings(record: Record) -> dict[str, Any]:
    """What a person should look at in this record's text; nothing found, nothing shown."""
    flags = scan_record(record)
    return {"flags": flags[:MAX_FINDINGS_SHOWN], "more": max(0, len(flags) - MAX_FINDINGS_SHOWN)}

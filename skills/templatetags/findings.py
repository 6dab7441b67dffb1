"""Template tag that shows scanner findings in a record's text as a warning panel."""

from typing import Any

from django import template

from personas.models import Record
from skills.record_scan import scan_record

register = template.Library()

MAX_FINDINGS_SHOWN = 20


@register.inclusion_tag("skills/_findings.html")
def findings(record: Record) -> dict[str, Any]:
    """Render the scanner findings of the record, or nothing if there are none."""
    field_findings = scan_record(record)
    more = max(0, len(field_findings) - MAX_FINDINGS_SHOWN)
    return {"findings": field_findings[:MAX_FINDINGS_SHOWN], "more": more}

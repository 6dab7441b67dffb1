"""What a key has fetched, for its own page."""

from typing import Any

from django import template

from personas.models import ApiKey
from prompts.ledger.selectors import LedgerFilter, ledger_rows

register = template.Library()
SHOWN = 8


@register.inclusion_tag("prompts/ledger/_lately.html", takes_context=True)
def fetched_lately(context: dict[str, Any], key: ApiKey) -> dict[str, Any]:
    """The last prompts it was handed, and the way to all of them."""
    workspace = context["workspace"]
    rows = list(ledger_rows(workspace, LedgerFilter(key_id=key.pk))[: SHOWN + 1])
    return {"workspace": workspace, "key": key, "rows": rows[:SHOWN], "has_more": len(rows) > SHOWN}

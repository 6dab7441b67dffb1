"""The panel that tells, on a record's or a file's own page, in which prompts it is."""

from typing import Any

from django import template

from personas.models import WorkspaceOwned
from prompts.provenance.origins import KINDS
from prompts.provenance.usage import versions_holding

register = template.Library()

# An agent's prompts are all its own: they have a tab there.
WITHOUT = {"agent"}


@register.inclusion_tag("prompts/versions/_holdings.html", takes_context=True)
def in_which_prompts(context: dict[str, Any], record: WorkspaceOwned) -> dict[str, Any]:
    kind = getattr(record, "kind", "context_file")
    if kind not in KINDS or kind in WITHOUT:
        return {}
    found = versions_holding(context["workspace"], kind, record.pk)
    return {"workspace": context["workspace"], "kind": kind, "key": record.pk, "found": found}

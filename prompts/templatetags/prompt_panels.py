"""The panel that tells, on a record's or a file's own page, in which prompts it is."""

from collections.abc import Sequence
from typing import Any

from django import template

from personas.models import ApiKey, Memory, WorkspaceOwned
from prompts.builds.middleware import REBUILDING_SINCE
from prompts.builds.progress import progress_of, progress_shown, read_since
from prompts.ledger.selectors import LedgerFilter, ledger_rows
from prompts.provenance.origins import KINDS
from prompts.provenance.usage import Reach, Reaches, reaches_of, versions_holding

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


@register.simple_tag(takes_context=True)
def reaches(context: dict[str, Any], memories: Sequence[Memory]) -> Reaches:
    """For all memories of a page at once."""
    return reaches_of(context["workspace"], memories)


@register.filter
def reach_of(found: Reaches, memory: Memory) -> Reach:
    return found.by_memory.get(memory.pk, Reach(0, 0))


SHOWN = 8


@register.inclusion_tag("prompts/ledger/_lately.html", takes_context=True)
def fetched_lately(context: dict[str, Any], key: ApiKey) -> dict[str, Any]:
    """The last prompts it was handed, and the way to all of them."""
    workspace = context["workspace"]
    rows = list(ledger_rows(workspace, LedgerFilter(key_id=key.pk))[: SHOWN + 1])
    return {"workspace": workspace, "key": key, "rows": rows[:SHOWN], "has_more": len(rows) > SHOWN}


@register.inclusion_tag("components/rebuilding.html", takes_context=True)
def rebuilding(context: dict[str, Any], everything: bool = False) -> dict[str, Any]:
    """Whoever has just saved is also told when it is over already; others only while something waits."""
    since = read_since(context["request"].session.pop(REBUILDING_SINCE, ""))
    workspace = context["workspace"]
    return progress_shown(workspace, progress_of(workspace, since), everything=everything)

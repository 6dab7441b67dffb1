"""Template tags for panels on pages of other apps: usage in prompts, recent fetches, rebuild progress."""

from collections.abc import Sequence
from typing import Any

from django import template
from django.utils.translation import ngettext

from personas.models import ApiKey, Memory, MemoryState, Record, WorkspaceOwned
from personas.templatetags.ui import format_count
from prompts.builds.middleware import REBUILD_SESSION_KEY
from prompts.builds.progress import get_build_progress, get_progress_context, parse_since
from prompts.ledger.selectors import LedgerFilter, list_ledger_entries
from prompts.provenance.origins import RECORD_KINDS
from prompts.provenance.record_reach import find_production_revisions, list_unused_layouts
from prompts.provenance.usage import MemoryUsage, MemoryUsageSummary, get_memory_usage, get_record_usage

register = template.Library()

# Kinds without a usage panel: agent pages have their own tabs for prompts.
EXCLUDED_KINDS = {"agent"}


@register.inclusion_tag("prompts/versions/_holdings.html", takes_context=True)
def record_usage_panel(context: dict[str, Any], record: WorkspaceOwned) -> dict[str, Any]:
    kind = getattr(record, "kind", "context_file")
    if kind not in RECORD_KINDS or kind in EXCLUDED_KINDS:
        return {}
    workspace = context["workspace"]
    usage = get_record_usage(workspace, kind, record.pk)
    return {
        "workspace": workspace,
        "kind": kind,
        "key": record.pk,
        "record_usage": usage,
        "revision": record.revision if isinstance(record, Record) else 0,
        "production_revisions": find_production_revisions(workspace, kind, record.pk, usage.usages)
        if isinstance(record, Record) and usage.usages
        else {},
        "unused_layouts": list_unused_layouts(workspace, record) if isinstance(record, Record) else [],
    }


@register.simple_tag
def outdated_revision(revisions: dict[int, int], prompt_id: int, newest: int) -> int:
    """Return the revision in production if it is not the newest one; 0 otherwise."""
    revision = revisions.get(prompt_id, 0)
    return revision if revision and revision < newest else 0


@register.simple_tag(takes_context=True)
def memory_usage(context: dict[str, Any], memories: Sequence[Memory]) -> MemoryUsageSummary:
    """Load the usage of all memories of a page at once."""
    return get_memory_usage(context["workspace"], memories)


@register.filter
def usage_for_memory(summary: MemoryUsageSummary, memory: Memory) -> MemoryUsage:
    return summary.by_memory.get(memory.pk, MemoryUsage(0, 0))


def describe_memory_usage(memory: Memory, usage: MemoryUsage) -> str:
    """Describe the prompts that contain a memory, or that could contain it once it is approved."""
    if memory.state == MemoryState.PROPOSED:
        count = usage.total
        text = ngettext("may change %(number)s prompt", "may change %(number)s prompts", count)
    else:
        count = usage.now
        text = ngettext("in %(number)s prompt", "in %(number)s prompts", count)
    return text % {"number": format_count(count)}


MAX_SHOWN_FETCHES = 8


@register.inclusion_tag("prompts/ledger/_lately.html", takes_context=True)
def recent_fetches(context: dict[str, Any], key: ApiKey) -> dict[str, Any]:
    """Show the last fetches of a key and a link to all of them."""
    workspace = context["workspace"]
    rows = list(list_ledger_entries(workspace, LedgerFilter(key_id=key.pk))[: MAX_SHOWN_FETCHES + 1])
    return {
        "workspace": workspace,
        "key": key,
        "rows": rows[:MAX_SHOWN_FETCHES],
        "has_more": len(rows) > MAX_SHOWN_FETCHES,
    }


@register.inclusion_tag("components/rebuilding.html", takes_context=True)
def rebuild_status(context: dict[str, Any], everything: bool = False) -> dict[str, Any]:
    """Show the progress of rebuilds while builds are pending.

    After a save in this session, the progress is shown once even if the builds are already finished.
    """
    since = parse_since(context["request"].session.pop(REBUILD_SESSION_KEY, ""))
    workspace = context["workspace"]
    return get_progress_context(workspace, get_build_progress(workspace, since), everything=everything)

"""Template tags for panels on pages of other apps: usage in prompts, recent fetches, rebuild progress."""

from collections.abc import Sequence
from typing import Any

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from personas.models import Agent, ApiKey, Memory, MemoryStatus, Record, WorkspaceOwned
from personas.templatetags.ui import format_count
from prompts.evidence.ledger.selectors import (
    CHART_DAYS,
    DailyFetches,
    LedgerFilter,
    count_daily_fetches,
    list_ledger_entries,
)
from prompts.publishing.builds.middleware import REBUILD_SESSION_KEY
from prompts.publishing.builds.progress import get_build_progress, get_progress_context, parse_since
from prompts.publishing.provenance.origins import RECORD_KINDS
from prompts.publishing.provenance.usage import (
    MemoryUsage,
    MemoryUsageSummary,
    find_production_revisions,
    get_memory_usage,
    get_record_usage,
    is_used_by_layout,
    list_unused_layouts,
)
from skills.agent_context.effective import AgentSkill

register = template.Library()

# Kinds without a usage panel: agent pages have their own tabs for prompts.
EXCLUDED_KINDS = {"agent"}
# Layouts that also list the skills that only people can start.
LAYOUTS_WITH_PEOPLE_SKILLS = {"opal"}


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
def is_in_layout(kind: str, layout: str) -> bool:
    """Whether prompts in this layout can contain records of this kind."""
    return is_used_by_layout(kind, layout)


@register.simple_tag
def skill_exclusion(skill: AgentSkill, layout: str) -> str:
    """Return why prompts in this layout do not list a skill of an agent; empty if they do."""
    if not is_used_by_layout("skill", layout):
        return _("Not used by the %(name)s layout") % {"name": layout}
    if skill.disable_model_invocation and layout not in LAYOUTS_WITH_PEOPLE_SKILLS:
        return _("Only people can start this skill")
    return ""


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
    if memory.status == MemoryStatus.PROPOSED:
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


SPARK_WIDTH, SPARK_HEIGHT = 84, 20
BAR_WIDTH, BAR_GAP, BAR_HEIGHT = 16, 4, 72


@register.filter
def sparkline(fetches: DailyFetches) -> SafeString:
    """Draw the fetches as a line. Without fetches it is flat."""
    step, top = SPARK_WIDTH / (len(fetches.counts) - 1), fetches.highest or 1
    points = " ".join(
        f"{index * step:.1f},{SPARK_HEIGHT - 2 - (SPARK_HEIGHT - 4) * count / top:.1f}"
        for index, count in enumerate(fetches.counts)
    )
    return format_html(
        '<svg class="dr-spark" viewBox="0 0 {} {}" role="img" aria-label="{}"><title>{}</title>'
        '<polyline points="{}"/></svg>',
        SPARK_WIDTH,
        SPARK_HEIGHT,
        describe_fetches(fetches),
        describe_fetches(fetches),
        points,
    )


def describe_fetches(fetches: DailyFetches) -> str:
    text = ngettext(
        "%(count)s fetch in the last %(days)s days",
        "%(count)s fetches in the last %(days)s days",
        fetches.total,
    )
    return text % {"count": f"{fetches.total:,}", "days": CHART_DAYS}


@register.filter
def bar_chart(fetches: DailyFetches) -> SafeString:
    """Draw the fetches as one bar per day. The page has the same numbers as a table."""
    top, width = fetches.highest or 1, len(fetches.counts) * (BAR_WIDTH + BAR_GAP)
    bars = [
        (
            index * (BAR_WIDTH + BAR_GAP),
            f"{BAR_HEIGHT - max(height := BAR_HEIGHT * count / top, 1):.1f}",
            BAR_WIDTH,
            f"{max(height, 1):.1f}",
            f"{day:%d %b}: {count:,}",
        )
        for index, (day, count) in enumerate(zip(fetches.days, fetches.counts, strict=True))
    ]
    drawn = format_html_join(
        "", '<rect x="{}" y="{}" width="{}" height="{}" rx="2"><title>{}</title></rect>', bars
    )
    return format_html(
        '<svg class="dr-fetch-bars" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>',
        width,
        BAR_HEIGHT,
        describe_fetches(fetches),
        drawn,
    )


@register.inclusion_tag("prompts/agents/_fetches.html", takes_context=True)
def fetch_chart(context: dict[str, Any], agent: Agent) -> dict[str, Any]:
    """Show the fetches of an agent as a chart, with a link to the ledger."""
    workspace = context["workspace"]
    fetches = count_daily_fetches(workspace, [agent.pk])[agent.pk]
    rows = list(zip(fetches.days, fetches.counts, strict=True))
    return {"workspace": workspace, "agent": agent, "fetches": fetches, "rows": rows}

"""Template tags for charts, drawn as plain SVG: a sparkline, and bars with a table for screen readers."""

from typing import Any

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import ngettext

from personas.models import Agent
from prompts.ledger.traffic import CHART_DAYS, DailyFetches, count_daily_fetches

register = template.Library()
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
        '<svg class="dr-bars" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>',
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

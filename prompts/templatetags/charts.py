"""Charts as inline SVG. Each page has the same numbers as a table for screen readers and for print."""

from collections.abc import Iterator

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from prompts.evidence.ledger.outdated_history import OutdatedHistory
from prompts.publishing.sizes.size_history import OTHER_SECTIONS, SizeHistory
from prompts.templatetags.versions import section_title

register = template.Library()

CHART_WIDTH, CHART_HEIGHT = 480, 120
BAR_SHARE = 0.8
RECT = '<rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>'


@register.filter
def chart_section_title(name: str) -> str:
    """Return the title of a section in a chart."""
    return _("Other sections") if name == OTHER_SECTIONS else str(section_title(name))


@register.filter
def size_chart(history: SizeHistory) -> SafeString:
    """Draw the tokens of each version as a bar, stacked by section, the largest section at the bottom."""
    first, last = history.versions[0], history.versions[-1]
    label = _("Tokens by section: %(before)s in version %(first)s, %(after)s in version %(last)s") % {
        "before": f"{first.total:,}",
        "first": first.number,
        "after": f"{last.total:,}",
        "last": last.number,
    }
    return draw_chart(label, format_html_join("", RECT, list_size_bars(history)))


def list_size_bars(history: SizeHistory) -> Iterator[tuple[str, ...]]:
    step, top = CHART_WIDTH / len(history.versions), history.highest or 1
    for index, version in enumerate(history.versions):
        bottom = float(CHART_HEIGHT)
        for position, (name, tokens) in enumerate(zip(history.sections, version.tokens, strict=True)):
            height = CHART_HEIGHT * tokens / top
            bottom -= height
            title = _("Version %(number)s, %(section)s: %(tokens)s tokens") % {
                "number": version.number,
                "section": chart_section_title(name),
                "tokens": f"{tokens:,}",
            }
            yield (
                f"dr-series-{position + 1}",
                *format_box(index * step, bottom, step * BAR_SHARE, height),
                title,
            )


@register.filter
def outdated_chart(history: OutdatedHistory) -> SafeString:
    """Draw the number of outdated bots as one bar per day."""
    label = _("Outdated bots by day: %(now)s today, a maximum of %(highest)s in the last %(days)s days") % {
        "now": f"{history.counts[-1]:,}",
        "highest": f"{history.highest:,}",
        "days": len(history.days),
    }
    step, top = CHART_WIDTH / len(history.days), history.highest or 1
    heights = [max(CHART_HEIGHT * count / top, 1) for count in history.counts]
    boxes = [
        format_box(index * step, CHART_HEIGHT - height, step * BAR_SHARE, height)
        for index, height in enumerate(heights)
    ]
    bars = [
        ("dr-series-1", *box, f"{day:%d %b}: {count:,}")
        for box, day, count in zip(boxes, history.days, history.counts, strict=True)
    ]
    return draw_chart(label, format_html_join("", RECT, bars))


def format_box(x: float, y: float, width: float, height: float) -> tuple[str, str, str, str]:
    """Format numbers for SVG, which needs a decimal point in every language."""
    return f"{x:.1f}", f"{y:.1f}", f"{width:.1f}", f"{height:.1f}"


def draw_chart(label: str, shapes: SafeString) -> SafeString:
    return format_html(
        '<svg class="dr-chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>',
        CHART_WIDTH,
        CHART_HEIGHT,
        label,
        shapes,
    )

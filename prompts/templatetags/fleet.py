"""Template tags of the fleet page: budget bars, and the HTML that many cells of the matrix share."""

from datetime import datetime

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.translation import gettext as _

from personas.templatetags.ui import format_count, format_exact_time
from prompts.templatetags.versions import percent_of

register = template.Library()

BUDGET_BAR_HTML = (
    '<svg class="dr-budget-bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">'
    '<rect class="dr-budget-room" width="100" height="4"></rect>'
    '<rect class="dr-budget-used" width="{}" height="4"></rect></svg>'
)


class MatrixHtml:
    """Renders the age and the size of matrix cells. Caches both: many cells of a page share them."""

    def __init__(self) -> None:
        self.ages: dict[datetime | None, SafeString | str] = {}
        self.sizes: dict[tuple[int, int | None], SafeString] = {}

    def render_age(self, at: datetime | None) -> SafeString | str:
        """Render the age; prompts of one agent are often released together."""
        if at not in self.ages:
            self.ages[at] = render_age(at, "dr-fleet-age")
        return self.ages[at]

    def render_size(self, tokens: int, budget: int | None) -> SafeString:
        key = tokens, budget
        if key not in self.sizes:
            self.sizes[key] = budget_bar(tokens, budget)
        return self.sizes[key]


@register.simple_tag
def budget_bar(tokens: int, budget: int | None) -> SafeString:
    """Render the token count as text and, if there is a budget, as a bar."""
    limit = format_html('<span class="dr-budget-most"> / {}</span>', format_count(budget)) if budget else ""
    return format_html(
        '<span class="dr-budget{}"><span class="dr-budget-words">{}{} {}</span>{}</span>',
        " is-over" if budget and tokens > budget else "",
        format_count(tokens),
        limit,
        _("tokens"),
        format_html(BUDGET_BAR_HTML, percent_of(tokens, budget)) if budget else "",
    )


def render_age(at: datetime | None, css_class: str = "") -> SafeString | str:
    """Render the time since a timestamp, with the exact time in the title."""
    if at is None:
        return ""
    local_time = timezone.localtime(at)
    is_fresh = (timezone.now() - at).total_seconds() < 60
    text = _("just now") if is_fresh else timesince(at, depth=1).replace("\xa0", " ")
    return format_html(
        '<time class="{}" datetime="{}" title="{}">{}</time>',
        css_class,
        local_time.isoformat(timespec="seconds"),
        format_exact_time(local_time),
        text,
    )

"""Template tags of the fleet page: matrix cells and budget bars."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cached_property

from django import template
from django.contrib.humanize.templatetags.humanize import intcomma
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.translation import gettext as _

from personas.models import Channel
from personas.templatetags.ui import icon
from prompts.fleet.matrix import MatrixCell, StatusFlag
from prompts.templatetags.versions import percent_of

register = template.Library()

CELL_HTML = (
    '<td data-label="{}"><div class="dr-fleet-cell{}"><div class="dr-fleet-top">{}{}{}</div>{}{}</div></td>'
)
EMPTY_CELL_HTML = '<td class="dr-fleet-none"><span class="sr-only">{}</span></td>'
CHECKBOX_HTML = (
    '<label class="dr-fleet-pick"><input class="checkbox checkbox-xs" type="checkbox" name="chosen"'
    ' value="{}" aria-label="{} {}" data-pick data-column="{}"></label>'
)
# The visible text "v5" is part of the accessible name, so that voice control finds the link.
VERSION_LINK_HTML = '<a class="dr-fleet-version" href="{}"><span class="sr-only">{}: </span>v{}</a>'
NO_VERSION_LINK_HTML = '<a class="dr-fleet-version" href="{}">{}<span class="sr-only">: {}</span></a>'
FLAG_HTML = '<li class="dr-fleet-flag is-{}"{}>{}</li>'
BUDGET_BAR_HTML = (
    '<svg class="dr-budget-bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">'
    '<rect class="dr-budget-room" width="100" height="4"></rect>'
    '<rect class="dr-budget-used" width="{}" height="4"></rect></svg>'
)


@register.simple_tag
def fleet_cells(cells: Sequence[tuple[Channel, MatrixCell | None]], can_pick: object = False) -> SafeString:
    """Render the cells of a matrix row in Python.

    A page has hundreds of cells, and a template takes ten times as long.
    """
    renderer = CellRenderer(can_pick=bool(can_pick))
    return format_html_join("", "{}", ((renderer.render_cell(channel, cell),) for channel, cell in cells))


class CellRenderer:
    """Renders matrix cells and caches HTML that many cells share."""

    def __init__(self, *, can_pick: bool) -> None:
        self.can_pick = can_pick
        self.choose_label, self.bots_label = _("Choose"), _("Bots in the last hour:")
        self.ages: dict[datetime | None, SafeString | str] = {}
        self.sizes: dict[tuple[int, int | None], SafeString] = {}

    def render_cell(self, channel: Channel, cell: MatrixCell | None) -> SafeString:
        if cell is None:
            return format_html(EMPTY_CELL_HTML, _("Does not speak here"))
        if not cell.is_match:
            return format_html(
                CELL_HTML, channel.name, " is-other", "", self.render_version_link(cell), "", "", ""
            )
        checkbox = self.render_checkbox(channel, cell) if self.can_pick else ""
        budget_bar_html = self.render_budget_bar(cell) if cell.number else ""
        return format_html(
            CELL_HTML,
            channel.name,
            "",
            checkbox,
            self.render_version_link(cell),
            self.render_cell_age(cell),
            budget_bar_html,
            self.render_flags(cell),
        )

    def render_checkbox(self, channel: Channel, cell: MatrixCell) -> SafeString:
        return format_html(CHECKBOX_HTML, cell.prompt_id, self.choose_label, cell.label, channel.slug)

    def render_version_link(self, cell: MatrixCell) -> SafeString:
        if cell.number:
            return format_html(VERSION_LINK_HTML, cell.url, cell.label, cell.number)
        return format_html(NO_VERSION_LINK_HTML, cell.url, _("No version"), cell.label)

    def render_cell_age(self, cell: MatrixCell) -> SafeString | str:
        """Render the age, cached by timestamp: prompts of one agent are often released together."""
        if cell.since not in self.ages:
            self.ages[cell.since] = render_age(cell.since, "dr-fleet-age")
        return self.ages[cell.since]

    def render_budget_bar(self, cell: MatrixCell) -> SafeString:
        key = cell.tokens, cell.budget
        if key not in self.sizes:
            self.sizes[key] = budget_bar(*key)
        return self.sizes[key]

    def render_flags(self, cell: MatrixCell) -> SafeString | str:
        if not cell.flags and not cell.bots:
            return ""
        items = [self.render_flag(cell, flag) for flag in cell.flags]
        if cell.bots:
            items.append(
                format_html(
                    '<li class="dr-fleet-bots" title="{}">{}{}</li>',
                    self.bots_label,
                    self.bots_icon,
                    cell.bots,
                )
            )
        return format_html('<ul class="dr-fleet-flags">{}</ul>', join_html(items))

    def render_flag(self, cell: MatrixCell, flag: StatusFlag) -> SafeString:
        title = format_html(' title="{}"', flag.detail) if flag.detail else ""
        content: SafeString | str = flag.label
        if flag.tone == "error":
            content = format_html(
                '<a href="{}">{}</a><span class="sr-only">: {}</span>',
                cell.timeline_url,
                flag.label,
                flag.detail,
            )
        return format_html(FLAG_HTML, flag.tone, title, content)

    @cached_property
    def bots_icon(self) -> SafeString:
        return icon("agents", label=self.bots_label)


def join_html(fragments: Iterable[SafeString]) -> SafeString:
    return format_html_join("", "{}", ((fragment,) for fragment in fragments))


@register.simple_tag
def budget_bar(tokens: int, budget: int | None) -> SafeString:
    """Render the token count as text and, if there is a budget, as a bar."""
    limit = format_html('<span class="dr-budget-most"> / {}</span>', intcomma(budget)) if budget else ""
    return format_html(
        '<span class="dr-budget{}"><span class="dr-budget-words">{}{} {}</span>{}</span>',
        " is-over" if budget and tokens > budget else "",
        intcomma(tokens),
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
        date_format(local_time, "d M Y, H:i:s T"),
        text,
    )

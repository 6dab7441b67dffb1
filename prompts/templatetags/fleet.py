"""Template tags of the fleet: its cells, of which there are hundreds on a page, and the words in them."""

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
# Who speaks to the page says what they see: "v5".
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
    """A row of the matrix; drawn here, for a template takes ten times as long over as many."""
    pen = CellRenderer(can_pick=bool(can_pick))
    return format_html_join("", "{}", ((pen.place(channel, cell),) for channel, cell in cells))


class CellRenderer:
    """Draws cells; what they share is looked up once."""

    def __init__(self, *, can_pick: bool) -> None:
        self.can_pick = can_pick
        self.choose, self.bots = _("Choose"), _("Bots in the last hour:")
        self.ages: dict[datetime | None, SafeString | str] = {}
        self.sizes: dict[tuple[int, int | None], SafeString] = {}

    def place(self, channel: Channel, cell: MatrixCell | None) -> SafeString:
        if cell is None:
            return format_html(EMPTY_CELL_HTML, _("Does not speak here"))
        if not cell.is_match:
            return format_html(CELL_HTML, channel.name, " is-other", "", self.link(cell), "", "", "")
        box = self.box(channel, cell) if self.can_pick else ""
        size = self.size(cell) if cell.number else ""
        return format_html(
            CELL_HTML, channel.name, "", box, self.link(cell), self.age(cell), size, self.flags(cell)
        )

    def box(self, channel: Channel, cell: MatrixCell) -> SafeString:
        return format_html(CHECKBOX_HTML, cell.prompt, self.choose, cell.named, channel.slug)

    def link(self, cell: MatrixCell) -> SafeString:
        if cell.number:
            return format_html(VERSION_LINK_HTML, cell.url, cell.named, cell.number)
        return format_html(NO_VERSION_LINK_HTML, cell.url, _("No version"), cell.named)

    def age(self, cell: MatrixCell) -> SafeString | str:
        """Prompts of one agent are often released together."""
        if cell.since not in self.ages:
            self.ages[cell.since] = render_age(cell.since, "dr-fleet-age")
        return self.ages[cell.since]

    def size(self, cell: MatrixCell) -> SafeString:
        key = cell.tokens, cell.budget
        if key not in self.sizes:
            self.sizes[key] = budget_bar(*key)
        return self.sizes[key]

    def flags(self, cell: MatrixCell) -> SafeString | str:
        if not cell.flags and not cell.bots:
            return ""
        said = [self.flag(cell, flag) for flag in cell.flags]
        if cell.bots:
            said.append(
                format_html(
                    '<li class="dr-fleet-bots" title="{}">{}{}</li>', self.bots, self.bots_icon, cell.bots
                )
            )
        return format_html('<ul class="dr-fleet-flags">{}</ul>', join_html(said))

    def flag(self, cell: MatrixCell, flag: StatusFlag) -> SafeString:
        title = format_html(' title="{}"', flag.more) if flag.more else ""
        words: SafeString | str = flag.words
        if flag.tone == "error":
            words = format_html(
                '<a href="{}">{}</a><span class="sr-only">: {}</span>', cell.timeline, flag.words, flag.more
            )
        return format_html(FLAG_HTML, flag.tone, title, words)

    @cached_property
    def bots_icon(self) -> SafeString:
        return icon("agents", label=self.bots)


def join_html(pieces: Iterable[SafeString]) -> SafeString:
    return format_html_join("", "{}", ((piece,) for piece in pieces))


@register.simple_tag
def budget_bar(tokens: int, budget: int | None) -> SafeString:
    """The figures are the bar's words; without a budget there is no bar."""
    most = format_html('<span class="dr-budget-most"> / {}</span>', intcomma(budget)) if budget else ""
    return format_html(
        '<span class="dr-budget{}"><span class="dr-budget-words">{}{} {}</span>{}</span>',
        " is-over" if budget and tokens > budget else "",
        intcomma(tokens),
        most,
        _("tokens"),
        format_html(BUDGET_BAR_HTML, percent_of(tokens, budget)) if budget else "",
    )


def render_age(moment: datetime | None, look: str = "") -> SafeString | str:
    """As long as this; the exact moment is in the title."""
    if moment is None:
        return ""
    exact = timezone.localtime(moment)
    is_fresh = (timezone.now() - moment).total_seconds() < 60
    words = _("just now") if is_fresh else timesince(moment, depth=1).replace("\xa0", " ")
    return format_html(
        '<time class="{}" datetime="{}" title="{}">{}</time>',
        look,
        exact.isoformat(timespec="seconds"),
        date_format(exact, "d M Y, H:i:s T"),
        words,
    )

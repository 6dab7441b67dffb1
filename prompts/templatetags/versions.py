"""Template tags for versions: badges, sizes, and prompt text with origins and visible hidden characters."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from personas.templatetags.ui import badge, icon
from personas.ui.display_names import get_section_name
from prompts.models import LATEST, PRODUCTION, ReleaseStatus
from prompts.publishing.provenance.causes import CauseLabel
from prompts.publishing.provenance.omissions import describe_omission
from prompts.publishing.versions.text_rows import OriginSpan, TextRow
from skills.files.visible_text import Glyph, VisibleText
from skills.templatetags.text_html import render_pieces

register = template.Library()

LABEL_TONES = {LATEST: "info", PRODUCTION: "success"}
STATUS_TONES = {
    ReleaseStatus.REQUESTED: "warning",
    ReleaseStatus.APPROVED: "info",
    ReleaseStatus.RELEASED: "success",
    ReleaseStatus.REJECTED: "error",
    ReleaseStatus.WITHDRAWN: "neutral",
    ReleaseStatus.VOIDED: "error",
}
CACHE_LABELS = {
    "release": gettext_lazy("Everything above changes only with a release"),
    "refresh": gettext_lazy("Everything above changes only with a release or a file refresh"),
    "channel": gettext_lazy("Everything above is the same for all users on this channel"),
    "user": gettext_lazy("Everything above is the same in all of this user's calls"),
    "session": gettext_lazy("Everything above is the same within a session"),
}
# The placeholder that the builder writes for a slot.
PLACEHOLDER_PATTERN = re.compile(r"(⟦[^⟦⟧\n]+⟧)")


@register.simple_tag
def label_badge(name: str) -> SafeString:
    """Render a label as a colored badge."""
    return badge(name, LABEL_TONES.get(name, "accent"))


@register.simple_tag
def status_badge(status: str) -> SafeString:
    known = ReleaseStatus(status)
    return badge(known.label, STATUS_TONES[known])


@register.simple_tag
def cause_list(causes: Sequence[CauseLabel]) -> SafeString:
    """Render causes as a list; <bdi> around names keeps right-to-left names from reordering other text."""
    return format_html_join(
        ", ",
        "{}{}{}",
        ((cause.label, render_quoted_name(cause.name), format_revision(cause.revision)) for cause in causes),
    )


def render_quoted_name(name: str) -> SafeString | str:
    return format_html(" “<bdi>{}</bdi>”", render_pieces(VisibleText(name).split_chunks())) if name else ""


def format_revision(revision: int) -> str:
    return " " + _("revision %(number)s") % {"number": revision} if revision else ""


@register.filter
def section_title(name: str) -> str:
    """Return the display name of a section."""
    return get_section_name(name)


@register.filter
def omission_label(reason: str) -> str:
    """Describe why a part is not in a prompt."""
    return describe_omission(reason)


@register.filter
def cache_label(volatility: str) -> str:
    """Describe how stable the prefix before a cache boundary is."""
    return str(CACHE_LABELS.get(volatility, ""))


@register.filter
def signed_number(number: int | None) -> str:
    """Format a difference with its sign, using the Unicode minus; empty for None."""
    if number is None:
        return ""
    return f"+{number:,}" if number > 0 else f"−{-number:,}" if number else "±0"


@register.filter
def time_difference(at: datetime, other: datetime) -> str:
    """Describe how long before or after another timestamp this one is; below a minute, in seconds."""
    seconds = int(abs((at - other).total_seconds()))
    first, last = sorted([at, other])
    seconds_text = ngettext("%(n)s second", "%(n)s seconds", seconds) % {"n": seconds}
    duration = seconds_text if seconds < 60 else timesince(first, last, depth=1)
    template = _("%(long)s later") if at > other else _("%(long)s earlier")
    return template % {"long": duration}


@register.filter
def percent_of(part: int, total: int) -> str:
    """Format a percentage for the width of a bar, with a decimal point in every language."""
    return f"{100 * part / total:.2f}" if total else "0"


@register.filter
def percentage(share: float) -> str:
    """Format a share from 0 to 1 as a whole percentage."""
    return f"{share:.0%}" if share >= 0.005 or not share else "< 1%"


@register.simple_tag
def hash_status(is_linked: bool, digest: str, description: str) -> SafeString:
    """Render the beginning of a hash and whether it is valid; the description names what was compared."""
    icon_html = icon("chain" if is_linked else "warning")
    css_class = "dr-chain" if is_linked else "dr-chain is-broken"
    text = description if is_linked else _("Invalid: %(words)s") % {"words": description}
    return format_html(
        '<span class="{}" title="{}">{}<span class="dr-mono">{}</span><span class="sr-only">{}</span></span>',
        css_class,
        f"{text}. {digest}",
        icon_html,
        digest[:8],
        text,
    )


@register.simple_tag
def row_text(row: TextRow, visible_text: VisibleText, is_first: bool = False) -> SafeString:
    """Render the text of a row in spans colored by kind, without its final line break."""
    return format_html_join("", "{}", ((html,) for html in render_origin_spans(row, visible_text, is_first)))


def render_origin_spans(row: TextRow, visible_text: VisibleText, is_first: bool) -> Iterator[SafeString]:
    for span in row.spans:
        start, end = span.start, span.end
        if is_first and start == row.start:
            start += count_leading_line_ends(visible_text.text, start, end)
        if end == row.end and visible_text.text.endswith("\n", start, end):
            end -= 1
        if start < end:
            html = (
                render_slot_text(visible_text.split_chunks(start, end))
                if span.slot
                else render_pieces(visible_text.split_chunks(start, end))
            )
            yield format_html('<span class="dr-seg {}">{}</span>', get_span_css_class(span), html)


def count_leading_line_ends(text: str, start: int, end: int) -> int:
    """Count the line breaks at the start of a section, which the page replaces by a heading."""
    span_text = text[start:end]
    return len(span_text) - len(span_text.lstrip("\n"))


def render_slot_text(chunks: Iterable[str | Glyph]) -> SafeString:
    """Render the text of a slot; placeholders become chips."""
    return format_html_join("", "{}", ((html,) for chunk in chunks for html in split_placeholders(chunk)))


def split_placeholders(chunk: str | Glyph) -> Iterator[str | SafeString]:
    if isinstance(chunk, Glyph):
        yield render_pieces([chunk])
        return
    for index, part in enumerate(PLACEHOLDER_PATTERN.split(chunk)):
        yield format_html('<span class="dr-slot">{}</span>', part) if index % 2 else part


def get_span_css_class(span: OriginSpan) -> str:
    return kind_css_class(span.origin.kind)


@register.filter
def kind_css_class(kind: str) -> str:
    """Return the CSS class for the color of a kind; kinds come from our code, never from tenant input."""
    return f"is-{kind.replace('_', '-')}"

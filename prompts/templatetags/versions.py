"""Template tags for versions: labels, sizes, and texts beside their origins with what hides in them drawn."""

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
from personas.ui.display_names import get_display_name
from prompts.models import LATEST, PRODUCTION, ReleaseStatus
from prompts.provenance.causes import CauseLabel
from prompts.versions.page import describe_omission
from prompts.versions.text_rows import OriginSpan, TextRow
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
    "release": gettext_lazy("All above changes only with a release"),
    "refresh": gettext_lazy("All above changes only with a release or a refresh of files"),
    "channel": gettext_lazy("All above is the same for everybody on this channel"),
    "user": gettext_lazy("All above is the same for every call for this user"),
    "session": gettext_lazy("All above is the same within a session"),
}
# What the builder writes where a call will speak.
PLACEHOLDER_PATTERN = re.compile(r"(⟦[^⟦⟧\n]+⟧)")


@register.simple_tag
def label_badge(name: str) -> SafeString:
    """A label as a coloured word."""
    return badge(name, LABEL_TONES.get(name, "accent"))


@register.simple_tag
def status_badge(status: str) -> SafeString:
    known = ReleaseStatus(status)
    return badge(known.label, STATUS_TONES[known])


@register.simple_tag
def cause_list(causes: Sequence[CauseLabel]) -> SafeString:
    """Causes in a row; names are set apart, for what a tenant writes must not turn our words around."""
    return format_html_join(
        ", ",
        "{}{}{}",
        ((one.label, render_quoted_name(one.name), format_revision(one.revision)) for one in causes),
    )


def render_quoted_name(name: str) -> SafeString | str:
    return format_html(" “<bdi>{}</bdi>”", render_pieces(VisibleText(name).split_chunks())) if name else ""


def format_revision(revision: int) -> str:
    return " " + _("revision %(number)s") % {"number": revision} if revision else ""


@register.filter
def section_title(name: str) -> str:
    """A section's name as people write it."""
    return get_display_name(name)


@register.filter
def omission_label(reason: str) -> str:
    """Why a part is not in a prompt."""
    return describe_omission(reason)


@register.filter
def cache_label(volatility: str) -> str:
    """What a cache that ends at a line can count on."""
    return str(CACHE_LABELS.get(volatility, ""))


@register.filter
def signed_number(number: int | None) -> str:
    """A difference with its sign; a proper minus, and nothing for none."""
    if number is None:
        return ""
    return f"+{number:,}" if number > 0 else f"−{-number:,}" if number else "±0"


@register.filter
def time_difference(moment: datetime, other: datetime) -> str:
    """How long before or after another moment this one is; to the second where that is near."""
    seconds = int(abs((moment - other).total_seconds()))
    first, last = sorted([moment, other])
    words = ngettext("%(n)s second", "%(n)s seconds", seconds) % {"n": seconds}
    long = words if seconds < 60 else timesince(first, last, depth=1)
    said = _("%(long)s after") if moment > other else _("%(long)s before")
    return said % {"long": long}


@register.filter
def percent_of(part: int, whole: int) -> str:
    """So many hundredths of a whole, for the width of a bar; a point as the sign, whatever the language."""
    return f"{100 * part / whole:.2f}" if whole else "0"


@register.simple_tag
def hash_status(is_linked: bool, digest: str, words: str) -> SafeString:
    """The beginning of a hash with whether it holds; the words say what was compared."""
    mark = icon("chain" if is_linked else "warning")
    look = "dr-chain" if is_linked else "dr-chain is-broken"
    said = words if is_linked else _("Broken: %(words)s") % {"words": words}
    return format_html(
        '<span class="{}" title="{}">{}<span class="dr-mono">{}</span><span class="sr-only">{}</span></span>',
        look,
        f"{said}. {digest}",
        mark,
        digest[:8],
        said,
    )


@register.simple_tag
def row_text(row: TextRow, seen: VisibleText, is_first: bool = False) -> SafeString:
    """The words of a row, each stretch coloured by its kind; the line end that closes the row is left out."""
    return format_html_join("", "{}", ((one,) for one in render_origin_spans(row, seen, is_first)))


def render_origin_spans(row: TextRow, seen: VisibleText, is_first: bool) -> Iterator[SafeString]:
    for stretch in row.spans:
        start, end = stretch.start, stretch.end
        if is_first and start == row.start:
            start += count_leading_line_ends(seen.text, start, end)
        if end == row.end and seen.text.endswith("\n", start, end):
            end -= 1
        if start < end:
            words = (
                render_slot_text(seen.split_chunks(start, end))
                if stretch.slot
                else render_pieces(seen.split_chunks(start, end))
            )
            yield format_html('<span class="dr-seg {}">{}</span>', get_span_css_class(stretch), words)


def count_leading_line_ends(text: str, start: int, end: int) -> int:
    """A section begins with a gap; its heading stands there already."""
    words = text[start:end]
    return len(words) - len(words.lstrip("\n"))


def render_slot_text(pieces: Iterable[str | Glyph]) -> SafeString:
    """Words of a slot: what stands in for the call's own is a chip."""
    return format_html_join("", "{}", ((one,) for piece in pieces for one in split_placeholders(piece)))


def split_placeholders(piece: str | Glyph) -> Iterator[str | SafeString]:
    if isinstance(piece, Glyph):
        yield render_pieces([piece])
        return
    for at, said in enumerate(PLACEHOLDER_PATTERN.split(piece)):
        yield format_html('<span class="dr-slot">{}</span>', said) if at % 2 else said


def get_span_css_class(stretch: OriginSpan) -> str:
    return kind_css_class(stretch.origin.kind)


@register.filter
def kind_css_class(kind: str) -> str:
    """The class that gives a kind its colour; only kinds of ours come here, never a tenant's word."""
    return f"is-{kind.replace('_', '-')}"

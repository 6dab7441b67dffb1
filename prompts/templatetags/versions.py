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
from personas.ui.display_names import title_of
from prompts.models import LATEST, PRODUCTION, ReleaseStatus
from prompts.provenance.causes import Cause
from prompts.versions.page import omission_in_words
from prompts.versions.text_rows import Row, Stretch
from skills.files.visible_text import Glyph, Seen
from skills.templatetags.text_html import drawn

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
CACHE_WORDS = {
    "release": gettext_lazy("All above changes only with a release"),
    "refresh": gettext_lazy("All above changes only with a release or a refresh of files"),
    "channel": gettext_lazy("All above is the same for everybody on this channel"),
    "user": gettext_lazy("All above is the same for every call for this user"),
    "session": gettext_lazy("All above is the same within a session"),
}
# What the builder writes where a call will speak.
STAND_IN = re.compile(r"(⟦[^⟦⟧\n]+⟧)")


@register.simple_tag
def label_badge(name: str) -> SafeString:
    """A label as a coloured word."""
    return badge(name, LABEL_TONES.get(name, "accent"))


@register.simple_tag
def status_badge(status: str) -> SafeString:
    known = ReleaseStatus(status)
    return badge(known.label, STATUS_TONES[known])


@register.simple_tag
def cause_list(causes: Sequence[Cause]) -> SafeString:
    """Causes in a row; names are set apart, for what a tenant writes must not turn our words around."""
    return format_html_join(
        ", ", "{}{}{}", ((one.words, quoted(one.name), at(one.revision)) for one in causes)
    )


def quoted(name: str) -> SafeString | str:
    return format_html(" “<bdi>{}</bdi>”", drawn(Seen(name).pieces())) if name else ""


def at(revision: int) -> str:
    return " " + _("revision %(number)s") % {"number": revision} if revision else ""


@register.filter
def section_words(name: str) -> str:
    """A section's name as people write it."""
    return title_of(name)


@register.filter
def omission_words(reason: str) -> str:
    """Why a part is not in a prompt."""
    return omission_in_words(reason)


@register.filter
def cache_words(volatility: str) -> str:
    """What a cache that ends at a line can count on."""
    return str(CACHE_WORDS.get(volatility, ""))


@register.filter
def signed(number: int | None) -> str:
    """A difference with its sign; a proper minus, and nothing for none."""
    if number is None:
        return ""
    return f"+{number:,}" if number > 0 else f"−{-number:,}" if number else "±0"


@register.filter
def apart(moment: datetime, other: datetime) -> str:
    """How long before or after another moment this one is; to the second where that is near."""
    seconds = int(abs((moment - other).total_seconds()))
    first, last = sorted([moment, other])
    words = ngettext("%(n)s second", "%(n)s seconds", seconds) % {"n": seconds}
    long = words if seconds < 60 else timesince(first, last, depth=1)
    said = _("%(long)s after") if moment > other else _("%(long)s before")
    return said % {"long": long}


@register.filter
def share(part: int, whole: int) -> str:
    """So many hundredths of a whole, for the width of a bar; a point as the sign, whatever the language."""
    return f"{100 * part / whole:.2f}" if whole else "0"


@register.simple_tag
def chain_tick(is_linked: bool, digest: str, words: str) -> SafeString:
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
def row_text(row: Row, seen: Seen, is_first: bool = False) -> SafeString:
    """The words of a row, each stretch coloured by its kind; the line end that closes the row is left out."""
    return format_html_join("", "{}", ((one,) for one in drawn_stretches(row, seen, is_first)))


def drawn_stretches(row: Row, seen: Seen, is_first: bool) -> Iterator[SafeString]:
    for stretch in row.stretches:
        start, end = stretch.start, stretch.end
        if is_first and start == row.start:
            start += leading_line_ends(seen.text, start, end)
        if end == row.end and seen.text.endswith("\n", start, end):
            end -= 1
        if start < end:
            words = chipped(seen.pieces(start, end)) if stretch.slot else drawn(seen.pieces(start, end))
            yield format_html('<span class="dr-seg {}">{}</span>', kind_class(stretch), words)


def leading_line_ends(text: str, start: int, end: int) -> int:
    """A section begins with a gap; its heading stands there already."""
    words = text[start:end]
    return len(words) - len(words.lstrip("\n"))


def chipped(pieces: Iterable[str | Glyph]) -> SafeString:
    """Words of a slot: what stands in for the call's own is a chip."""
    return format_html_join("", "{}", ((one,) for piece in pieces for one in chips_in(piece)))


def chips_in(piece: str | Glyph) -> Iterator[str | SafeString]:
    if isinstance(piece, Glyph):
        yield drawn([piece])
        return
    for at, said in enumerate(STAND_IN.split(piece)):
        yield format_html('<span class="dr-slot">{}</span>', said) if at % 2 else said


def kind_class(stretch: Stretch) -> str:
    return kind_look(stretch.origin.kind)


@register.filter
def kind_look(kind: str) -> str:
    """The class that gives a kind its colour; only kinds of ours come here, never a tenant's word."""
    return f"is-{kind.replace('_', '-')}"

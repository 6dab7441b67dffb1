"""Template tags shared by all pages: form fields, icons, badges, timestamps, avatars."""

from __future__ import annotations

import zlib
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from django import template
from django.contrib.humanize.templatetags.humanize import intcomma
from django.core.paginator import Page
from django.forms import BoundField
from django.template import engines
from django.template.defaultfilters import stringfilter
from django.templatetags.static import static
from django.utils import timezone
from django.utils.dates import MONTHS_3
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import TIME_STRINGS
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from core.text.lists import format_list, format_short_list
from core.text.markdown import build_excerpt
from core.text.shorten import shorten_text
from core.text.sizes import format_size
from personas.templatetags.form_widgets import build_field_context
from personas.ui.display_names import get_display_name, get_verb_label, get_verb_phrase, render_person

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.template.backends.jinja2 import Jinja2

register = template.Library()

register.filter("person", render_person)

BADGE_TONES = ("neutral", "info", "success", "warning", "error", "accent")
AVATAR_COLOUR_COUNT = 6
# How many characters of a request id are shown in lists: enough to tell apart the requests on one page.
SHORT_ID_LENGTH = 8
# Units for times of less than a month, largest first.
SECONDS_PER_UNIT = {"week": 604_800, "day": 86_400, "hour": 3_600, "minute": 60}
# How many texts such as “3 hours ago” a process caches.
MAX_TIME_TEXTS = 1_000
# Parts of the User-Agent header. The first match wins: Edge and Opera also send "Chrome", and Chrome also
# sends "Safari".
BROWSER_NAMES = {
    "Edg": "Edge",
    "OPR/": "Opera",
    "Firefox/": "Firefox",
    "Chrome/": "Chrome",
    "Safari/": "Safari",
}
SYSTEM_NAMES = {
    "Android": "Android",
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Windows": "Windows",
    "Mac OS X": "macOS",
    "Linux": "Linux",
}


@register.inclusion_tag("components/field.html")
def field(
    bound: BoundField,
    mono: bool = False,
    rows: int | None = None,
    hide_label: bool = False,
    prefix_icon: str = "",
) -> dict[str, Any]:
    """Render a form field with label, control, help text and errors, linked by ARIA attributes."""
    return build_field_context(bound, mono=mono, rows=rows, hide_label=hide_label, prefix_icon=prefix_icon)


@register.simple_tag
def icon(name: str, label: str = "", size: str = "") -> SafeString:
    """Render an icon of the SVG sprite; hidden from screen readers unless it has a label."""
    if not label:
        return _render_decorative_icon(name, size)
    return format_html(
        '<svg class="{}" role="img" aria-label="{}"><use href="{}"></use></svg>',
        _get_icon_class(size),
        label,
        _get_icon_url(name),
    )


@lru_cache(maxsize=1024)
def _render_decorative_icon(name: str, size: str) -> SafeString:
    """Render an icon without a label. Cached, because a page has about sixty icons with few different names.

    The helpers below build new plain strings, so arguments are escaped even if they are marked as safe.
    This matters because a safe and an unsafe string that are equal share one cache entry.
    """
    return format_html(
        '<svg class="{}" aria-hidden="true"><use href="{}"></use></svg>',
        _get_icon_class(size),
        _get_icon_url(name),
    )


def _get_icon_class(size: str) -> str:
    return f"dr-icon dr-icon-{size}" if size else "dr-icon"


def _get_icon_url(name: str) -> str:
    return f"{static('icons.svg')}#{name}"


@register.simple_tag
def badge(text: object, tone: str = "neutral") -> SafeString:
    """Render a coloured badge. An unknown tone becomes neutral, because tones may come from stored data."""
    css_tone = tone if tone in BADGE_TONES else "neutral"
    return format_html('<span class="dr-badge dr-badge-{}">{}</span>', css_tone, text)


register.filter("filesize", format_size)
register.filter("shorten", stringfilter(shorten_text))


@register.simple_tag
def short_id(value: str, row_id: int, copy_label: str) -> SafeString | str:
    """Render the start of an id on one line, with the whole id in the title and a button that copies it.

    `row_id` makes the element unique in the page.
    """
    if len(value) <= SHORT_ID_LENGTH:
        return value or "—"
    start, element_id = value[:SHORT_ID_LENGTH], f"short-id-{row_id}"
    return format_html(
        '<span class="dr-short-id"><span class="dr-mono" id="{}" title="{}" data-text="{}">{}…</span>'
        '<button class="dr-copy-button dr-needs-js" type="button" data-copy="{}">{}'
        '<span class="sr-only"><span data-copy-label>{}</span> {}</span></button></span>',
        element_id,
        value,
        value,
        start,
        element_id,
        icon("copy"),
        copy_label,
        start,
    )


@register.filter
def display_name(name: str) -> str:
    """Display name of a stored kind, field or section."""
    return get_display_name(name)


@register.filter
def verb_label(name: str) -> str:
    """Display name of a stored audit action."""
    return get_verb_label(name)


@register.filter
def verb_phrase(name: str) -> str:
    """Display name of a stored audit action, to be followed by a kind or a name."""
    return get_verb_phrase(name)


@register.simple_tag
def ago(at: datetime | None) -> SafeString | str:
    """Render a relative time, with the exact timestamp in the title."""
    if at is None:
        return ""
    exact = timezone.localtime(at)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        exact.isoformat(timespec="seconds"),
        format_exact_time(exact),
        _format_time_distance(at, timezone.now()),
    )


def format_exact_time(local_time: datetime) -> str:
    """Format a local time as `date_format` does with "d M Y, H:i:s T", in a tenth of the time."""
    month = str(MONTHS_3[local_time.month]).title()
    return f"{local_time:%d} {month} {local_time.year}, {local_time:%H:%M:%S} {local_time.tzname()}"


def _format_time_distance(at: datetime, now: datetime) -> str:
    if abs((now - at).total_seconds()) < 60:
        return _("just now")
    unit, number = _measure_time(min(at, now), max(at, now))
    return _describe_time(get_language() or "", unit, number, is_future=at > now)


def _measure_time(start: datetime, end: datetime) -> tuple[str, int]:
    """Return the largest unit of the time between, and its number, as Django's `timesince` counts them."""
    months = (end.year - start.year) * 12 + end.month - start.month
    if (start.day, start.time()) > (end.day, end.time()):
        months -= 1
    if months:
        return ("year", months // 12) if months >= 12 else ("month", months)
    seconds = (end - start) // timedelta(seconds=1)
    return next((unit, seconds // size) for unit, size in SECONDS_PER_UNIT.items() if seconds >= size)


@lru_cache(MAX_TIME_TEXTS)
def _describe_time(language: str, unit: str, number: int, *, is_future: bool) -> str:
    """Describe a time from now in the active language, which is an argument for the cache."""
    time = TIME_STRINGS[unit] % {"num": number}
    text = (_("in %(time)s") if is_future else _("%(time)s ago")) % {"time": time}
    return text.replace("\xa0", " ")


@register.simple_tag
def avatar(text: object, size: str = "") -> SafeString:
    """Render an avatar: an emoji or the initials of a name, on a colour derived from the name."""
    name = str(text or "").strip()
    initials = _get_initials(name)
    classes = ["dr-avatar", f"dr-avatar-{zlib.crc32(name.encode()) % AVATAR_COLOUR_COUNT + 1}"]
    if not initials:
        classes.append("dr-avatar-emoji")
    if size:
        classes.append(f"dr-avatar-{size}")
    return format_html(
        '<span class="{}" aria-hidden="true">{}</span>', " ".join(classes), initials or name[:8] or "·"
    )


def _get_initials(name: str) -> str:
    parts = [
        part
        for part in name.replace("@", " ").replace("_", " ").replace("-", " ").split()
        if part[0].isalnum()
    ]
    # A keycap such as 1️⃣ starts with a digit but is an emoji.
    if not parts or "\ufe0f" in name:
        return ""
    return "".join(part[0] for part in parts[:2]).upper()


@register.filter
def name_list(names: Sequence[object], limit: int = 0) -> str:
    """Join names for a sentence: “Juniper, Fox and Mira”, or with a limit “Juniper, Fox and 2 more”."""
    texts = [str(name) for name in names]
    return format_short_list(texts, limit) if limit else format_list(texts)


@register.filter
def excerpt(text: str, length: int) -> str:
    """Return the beginning of a Markdown text on one line, without its marks."""
    return build_excerpt(text, length)


@register.simple_tag
def render_rows(template_name: str, **values: object) -> SafeString:
    """Render the rows of a long list with Jinja2, which escapes as Django does and takes a fifth of the time.

    The rows get only the given values, not the context of the page.
    """
    rows = cast("Jinja2", engines["jinja2"]).env.get_template(template_name)
    # A rendered module is HTML (it has `__html__`), so it is not escaped again.
    return format_html("{}", rows.make_module(values))


def format_count(number: int) -> str:
    """Format a number with thousands separators, as `intcomma` does, which is slow for small numbers."""
    return intcomma(number) if number >= 1_000 else str(number)


@register.simple_tag
def elided_page_range(page: Page[Any]) -> list[int | str]:
    """List the page numbers next to the current page and at both ends, with an ellipsis for each gap."""
    return list(page.paginator.get_elided_page_range(page.number, on_each_side=1, on_ends=1))


@register.filter
def browser_name(user_agent: str) -> str:
    """Format a User-Agent header as “Firefox on Linux”. An unknown header is cut to 60 characters."""
    program = next((name for token, name in BROWSER_NAMES.items() if token in user_agent), "")
    system = next((name for token, name in SYSTEM_NAMES.items() if token in user_agent), "")
    if program and system:
        return _("%(program)s on %(system)s") % {"program": program, "system": system}
    return program or system or user_agent[:60] or _("Unknown browser")

"""Template tags for found files: states, kinds, texts and differences with what hides in them drawn."""

import re
from collections.abc import Collection, Iterator, Sequence

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from core.text.diff import DiffLine
from personas.models import Agent
from personas.templatetags.ui import badge
from skills.agent_context.effective import SKILL_RECORD_PATH
from skills.agent_context.withheld import AgentFiles, get_agent_files
from skills.files.reasons import KIND_LABELS, describe_usage, list_state_reasons
from skills.files.visible_text import VisibleText, build_glyph
from skills.models import FileState
from skills.templatetags.text_html import (
    LineBlock,
    RenderedLine,
    render_changed_lines,
    render_glyph,
    render_pieces,
)
from skills.templatetags.text_html import render_diff_lines as parts_of_lines
from skills.templatetags.text_html import render_text_lines as parts_of_text

register = template.Library()

STATE_TONES = {
    "quarantined": "error",
    "invalid": "error",
    "missing": "warning",
    "changed": "info",
    "new": "accent",
    "current": "success",
    "ignored": "neutral",
}
# How the scanner writes a hidden character into an excerpt.
EXCERPT_MARK_PATTERN = re.compile(r"⟦U\+([0-9A-F]{4,5}|10[0-9A-F]{4})⟧")


@register.simple_tag
def state_badge(state: str) -> SafeString:
    """A file's state as a coloured word."""
    return badge(FileState(state).label, STATE_TONES[state])


@register.filter
def kind_label(kind: str) -> str:
    """What sort of file it is, for people."""
    return str(KIND_LABELS.get(kind, kind))


@register.filter
def place_label(place: str) -> str:
    """Where a skill lies: a path, or words for one that no file holds."""
    return _("written here") if place == SKILL_RECORD_PATH else place


register.filter("reasons", list_state_reasons)
register.filter("standing", describe_usage)


@register.filter
def thousands(number: int) -> str:
    """A number that can be read at a glance."""
    return f"{number:,}"


@register.filter
def glyphs(text: str) -> SafeString:
    """A text, escaped, with a box and its code point for each character that hides."""
    return render_pieces(VisibleText(text).pieces())


@register.filter
def render_excerpt(excerpt: str) -> SafeString:
    """An excerpt of the scanner's, escaped, with its marks drawn as boxes."""
    return format_html_join("", "{}", ((piece,) for piece in render_marks(excerpt)))


def render_marks(excerpt: str) -> Iterator[str | SafeString]:
    for place, piece in enumerate(EXCERPT_MARK_PATTERN.split(excerpt)):
        is_code = place % 2 == 1
        yield render_glyph(build_glyph(chr(int(piece, 16)))) if is_code else piece


@register.filter
def short_digest(digest: str) -> SafeString:
    """The beginning of a digest; all of it is in the title."""
    return format_html('<span class="dr-mono" title="{}">{}</span>', digest, digest[:12])


@register.simple_tag
def text_lines(text: str, flagged: Collection[int] | None = None) -> list[LineBlock]:
    """A text as numbered lines; those that something was found in stand out."""
    return parts_of_text(text, flagged or ())


@register.simple_tag
def diff_parts(lines: Sequence[DiffLine], is_whole: object = False) -> list[LineBlock]:
    """Lines of a difference, quiet stretches folded unless the whole text is wanted."""
    return parts_of_lines(lines, is_whole=bool(is_whole))


@register.simple_tag
def changed_lines(lines: Sequence[DiffLine]) -> list[RenderedLine]:
    """A few lines of a difference, without those between them."""
    return render_changed_lines(lines)


@register.simple_tag
def agent_files(agent: Agent) -> AgentFiles:
    """For an agent's own page: files that are withheld, and files that say who it is."""
    return get_agent_files(agent)

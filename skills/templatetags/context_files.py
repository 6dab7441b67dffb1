"""Template tags for found files: states, kinds, texts and differences with what hides in them drawn."""

import re
from collections.abc import Collection, Iterator, Sequence

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from core.text.diff import Line
from personas.models import Agent
from personas.templatetags.ui import badge
from skills.agent_context.effective import WRITTEN_HERE
from skills.agent_context.withheld import AgentFiles, files_about
from skills.files.reasons import KIND_WORDS, reasons_of, standing_of
from skills.files.visible_text import Seen, glyph
from skills.models import FileState
from skills.templatetags.text_html import DrawnLine, Part, box, drawn, drawn_apart
from skills.templatetags.text_html import diff_parts as parts_of_lines
from skills.templatetags.text_html import text_lines as parts_of_text

register = template.Library()

TONES = {
    "quarantined": "error",
    "invalid": "error",
    "missing": "warning",
    "changed": "info",
    "new": "accent",
    "current": "success",
    "ignored": "neutral",
}
# How the scanner writes a hidden character into an excerpt.
MARK = re.compile(r"⟦U\+([0-9A-F]{4,5}|10[0-9A-F]{4})⟧")


@register.simple_tag
def state_badge(state: str) -> SafeString:
    """A file's state as a coloured word."""
    return badge(FileState(state).label, TONES[state])


@register.filter
def kind_words(kind: str) -> str:
    """What sort of file it is, for people."""
    return str(KIND_WORDS.get(kind, kind))


@register.filter
def place_words(place: str) -> str:
    """Where a skill lies: a path, or words for one that no file holds."""
    return _("written here") if place == WRITTEN_HERE else place


register.filter("reasons", reasons_of)
register.filter("standing", standing_of)


@register.filter
def thousands(number: int) -> str:
    """A number that can be read at a glance."""
    return f"{number:,}"


@register.filter
def glyphs(text: str) -> SafeString:
    """A text, escaped, with a box and its code point for each character that hides."""
    return drawn(Seen(text).pieces())


@register.filter
def marked(excerpt: str) -> SafeString:
    """An excerpt of the scanner's, escaped, with its marks drawn as boxes."""
    return format_html_join("", "{}", ((piece,) for piece in unmarked(excerpt)))


def unmarked(excerpt: str) -> Iterator[str | SafeString]:
    for place, piece in enumerate(MARK.split(excerpt)):
        is_code = place % 2 == 1
        yield box(glyph(chr(int(piece, 16)))) if is_code else piece


@register.filter
def short(digest: str) -> SafeString:
    """The beginning of a digest; all of it is in the title."""
    return format_html('<span class="dr-mono" title="{}">{}</span>', digest, digest[:12])


@register.simple_tag
def text_lines(text: str, flagged: Collection[int] | None = None) -> list[Part]:
    """A text as numbered lines; those that something was found in stand out."""
    return parts_of_text(text, flagged or ())


@register.simple_tag
def diff_parts(lines: Sequence[Line], is_whole: object = False) -> list[Part]:
    """Lines of a difference, quiet stretches folded unless the whole text is wanted."""
    return parts_of_lines(lines, is_whole=bool(is_whole))


@register.simple_tag
def changed_lines(lines: Sequence[Line]) -> list[DrawnLine]:
    """A few lines of a difference, without those between them."""
    return drawn_apart(lines)


@register.simple_tag
def agent_files(agent: Agent) -> AgentFiles:
    """For an agent's own page: files that are withheld, and files that say who it is."""
    return files_about(agent)

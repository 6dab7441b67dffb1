"""Template tags of the Studio: the words of a row, each stretch with its source and lit where it is new."""

from collections.abc import Iterator

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from prompts.studio.text_view import StudioRow, StudioSpan
from prompts.templatetags.versions import count_leading_line_ends, kind_css_class, render_slot_text
from skills.files.visible_text import VisibleText
from skills.templatetags.text_html import render_pieces

register = template.Library()

SPAN_HTML = '<span class="dr-stretch dr-seg {}{}"{}>{}</span>'
PART_ATTRIBUTES_HTML = ' data-part="{}" data-origin="{}"'


@register.simple_tag
def studio_row_text(row: StudioRow, seen: VisibleText, is_first: bool = False) -> SafeString:
    """The words of a row; the line end that closes it is left out."""
    return format_html_join("", "{}", ((one,) for one in render_studio_spans(row, seen, is_first)))


def render_studio_spans(row: StudioRow, seen: VisibleText, is_first: bool) -> Iterator[SafeString]:
    for piece in row.pieces:
        start, end = piece.start, piece.end
        if is_first and start == row.start:
            start += count_leading_line_ends(seen.text, start, end)
        if end == row.end and seen.text.endswith("\n", start, end):
            end -= 1
        if start < end:
            pieces = seen.split_chunks(start, end)
            words = render_slot_text(pieces) if piece.slot else render_pieces(pieces)
            yield render_studio_span(piece, words)


def render_studio_span(piece: StudioSpan, words: SafeString) -> SafeString:
    source = piece.source
    known = format_html(PART_ATTRIBUTES_HTML, source.part, source.words) if source.part else ""
    return format_html(
        SPAN_HTML, kind_css_class(source.told.kind), " is-edited" if piece.is_edited else "", known, words
    )


@register.filter
def field_error_id(auto_id: str) -> str:
    """The line behind a field in which the live preview says what is wrong."""
    return f"{auto_id}_mistake"


@register.filter
def cached_share(cached: int, tokens: int) -> float:
    return cached / tokens if tokens else 0.0

"""Template tags of the Studio: the words of a row, each stretch with its source and lit where it is new."""

from collections.abc import Iterator

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from prompts.studio.text_view import Line, Piece
from prompts.templatetags.versions import chipped, kind_look, leading_line_ends
from skills.files.visible_text import Seen
from skills.templatetags.text_html import drawn

register = template.Library()

STRETCH = '<span class="dr-stretch dr-seg {}{}"{}>{}</span>'
OF_PART = ' data-part="{}" data-origin="{}"'


@register.simple_tag
def studio_words(row: Line, seen: Seen, is_first: bool = False) -> SafeString:
    """The words of a row; the line end that closes it is left out."""
    return format_html_join("", "{}", ((one,) for one in stretches(row, seen, is_first)))


def stretches(row: Line, seen: Seen, is_first: bool) -> Iterator[SafeString]:
    for piece in row.pieces:
        start, end = piece.start, piece.end
        if is_first and start == row.start:
            start += leading_line_ends(seen.text, start, end)
        if end == row.end and seen.text.endswith("\n", start, end):
            end -= 1
        if start < end:
            pieces = seen.pieces(start, end)
            words = chipped(pieces) if piece.slot else drawn(pieces)
            yield stretch(piece, words)


def stretch(piece: Piece, words: SafeString) -> SafeString:
    source = piece.source
    known = format_html(OF_PART, source.part, source.words) if source.part else ""
    return format_html(
        STRETCH, kind_look(source.told.kind), " is-edited" if piece.is_edited else "", known, words
    )


@register.filter
def mistake_id(auto_id: str) -> str:
    """The line behind a field in which the live preview says what is wrong."""
    return f"{auto_id}_mistake"


@register.filter
def cached_share(cached: int, tokens: int) -> float:
    return cached / tokens if tokens else 0.0
